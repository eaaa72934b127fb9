import {
  type Container,
  type ContainerPort,
  compareQuantities,
  dnsLabelErrors,
  type EnvVar,
  type FieldError,
  type LifecycleHandler,
  type Probe,
  portNameErrors,
  qualifiedNameErrors,
  type ResourceRequirements,
  type VolumeMount,
} from '#server/kube';
import {
  duplicate,
  eachInvalid,
  forbiddenField,
  invalidValue,
  missing,
  nonNegative,
  notSupported,
  portNumber,
  portNumberOrName,
  required,
} from './field-errors.ts';

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const MESSAGE_POLICIES = ['FallbackToLogsOnError', 'File'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const STANDARD_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage']);
const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;
const RELAXED_ENV_NAME =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";
const PRINTABLE_BUT_EQUALS = /^[ -<>-~]+$/;

/** Names of things containers may refer to in their pod. */
export interface PodSurroundings {
  volumes: ReadonlySet<string>;
  hostNetwork: boolean;
  /** A pod itself: in a template host ports may be left out, the pods made of it get them. */
  isPod: boolean;
}

/** Models ValidateResourceRequirements. */
export function resourceErrors(resources: ResourceRequirements | undefined, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const { limits = {}, requests = {} } = resources ?? {};
  for (const [name, quantity] of Object.entries(limits)) {
    errors.push(...resourceNameErrors(name, `${field}.limits[${name}]`));
    if (compareQuantities(quantity, '0') < 0) {
      errors.push(invalidValue(`${field}.limits[${name}]`, quantity, 'must be greater than or equal to 0'));
    }
  }
  for (const [name, quantity] of Object.entries(requests)) {
    errors.push(...resourceNameErrors(name, `${field}.requests[${name}]`));
    if (compareQuantities(quantity, '0') < 0) {
      errors.push(invalidValue(`${field}.requests[${name}]`, quantity, 'must be greater than or equal to 0'));
    }
    const limit = limits[name];
    if (limit !== undefined && compareQuantities(quantity, limit) > 0) {
      errors.push(
        invalidValue(
          `${field}.requests`,
          quantity,
          `must be less than or equal to ${name} limit of ${limit}`,
        ),
      );
    }
  }
  return errors;
}

function resourceNameErrors(name: string, field: string): FieldError[] {
  const errors = eachInvalid(field, name, qualifiedNameErrors(name));
  if (
    errors.length > 0 ||
    name.includes('/') ||
    STANDARD_RESOURCES.has(name) ||
    name.startsWith('hugepages-')
  ) {
    return errors;
  }
  return [invalidValue(field, name, 'must be a standard resource for containers')];
}

function portErrors(
  ports: readonly ContainerPort[] | undefined,
  field: string,
  pod: PodSurroundings,
): FieldError[] {
  const names = new Set<string>();
  return (ports ?? []).flatMap((port, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    if (port.name) {
      const wrong = portNameErrors(port.name);
      if (wrong.length > 0) errors.push(...eachInvalid(`${at}.name`, port.name, wrong));
      else if (names.has(port.name)) errors.push(duplicate(`${at}.name`, port.name));
      names.add(port.name);
    }
    if (port.containerPort === 0) errors.push(required(`${at}.containerPort`));
    else errors.push(...portNumber(port.containerPort, `${at}.containerPort`));
    if (port.hostPort) errors.push(...portNumber(port.hostPort, `${at}.hostPort`));
    if (pod.hostNetwork && (pod.isPod || port.hostPort) && port.hostPort !== port.containerPort) {
      errors.push(
        invalidValue(
          `${at}.hostPort`,
          port.hostPort ?? 0,
          'must match `containerPort` when `hostNetwork` is true',
        ),
      );
    }
    if (!port.protocol) errors.push(required(`${at}.protocol`));
    else if (!PROTOCOLS.includes(port.protocol))
      errors.push(notSupported(`${at}.protocol`, port.protocol, PROTOCOLS));
    return errors;
  });
}

function environmentErrors(env: readonly EnvVar[] | undefined, field: string): FieldError[] {
  return (env ?? []).flatMap((variable, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    if (!variable.name) errors.push(required(`${at}.name`));
    else if (!PRINTABLE_BUT_EQUALS.test(variable.name)) {
      errors.push(invalidValue(`${at}.name`, variable.name, RELAXED_ENV_NAME));
    }
    if (!variable.valueFrom) return errors;
    const sources = Object.keys(variable.valueFrom).length;
    if (sources === 0) {
      errors.push(
        invalidValue(
          `${at}.valueFrom`,
          '',
          'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
        ),
      );
    } else if (variable.value) {
      errors.push(invalidValue(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty'));
    } else if (sources > 1) {
      errors.push(
        invalidValue(`${at}.valueFrom`, '', 'may not have more than one field specified at a time'),
      );
    }
    const { configMapKeyRef, secretKeyRef } = variable.valueFrom;
    if (configMapKeyRef && !configMapKeyRef.name)
      errors.push(required(`${at}.valueFrom.configMapKeyRef.name`));
    if (configMapKeyRef && !configMapKeyRef.key) errors.push(required(`${at}.valueFrom.configMapKeyRef.key`));
    if (secretKeyRef && !secretKeyRef.name) errors.push(required(`${at}.valueFrom.secretKeyRef.name`));
    if (secretKeyRef && !secretKeyRef.key) errors.push(required(`${at}.valueFrom.secretKeyRef.key`));
    return errors;
  });
}

function mountErrors(
  mounts: readonly VolumeMount[] | undefined,
  volumes: ReadonlySet<string>,
  field: string,
): FieldError[] {
  const paths = new Set<string>();
  return (mounts ?? []).flatMap((mount, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    if (!mount.name) errors.push(required(`${at}.name`));
    if (!volumes.has(mount.name)) errors.push(missing(`${at}.name`, mount.name));
    if (!mount.mountPath) errors.push(required(`${at}.mountPath`));
    if (paths.has(mount.mountPath))
      errors.push(invalidValue(`${at}.mountPath`, mount.mountPath, 'must be unique'));
    paths.add(mount.mountPath);
    if (mount.subPath?.startsWith('/')) {
      errors.push(invalidValue(`${at}.subPath`, mount.subPath, 'must be a relative path'));
    }
    if (mount.subPath?.split('/').includes('..')) {
      errors.push(invalidValue(`${at}.subPath`, mount.subPath, "must not contain '..'"));
    }
    if (mount.subPath && mount.subPathExpr) {
      errors.push(
        invalidValue(
          `${at}.subPathExpr`,
          mount.subPathExpr,
          'subPathExpr and subPath are mutually exclusive',
        ),
      );
    }
    return errors;
  });
}

function handlerErrors(handler: Probe & LifecycleHandler, field: string): FieldError[] {
  const errors: FieldError[] = [];
  let found = 0;
  for (const kind of HANDLERS) {
    if (!handler[kind]) continue;
    found += 1;
    if (found > 1)
      errors.push(forbiddenField(`${field}.${kind}`, 'may not specify more than 1 handler type'));
  }
  if (found === 0) errors.push(required(field, 'must specify a handler type'));
  const { exec, httpGet, tcpSocket, grpc } = handler;
  if (exec && !exec.command?.length) errors.push(required(`${field}.exec.command`));
  if (httpGet) {
    if (!httpGet.path) errors.push(required(`${field}.httpGet.path`));
    errors.push(...portNumberOrName(httpGet.port, `${field}.httpGet.port`));
    if (httpGet.scheme !== 'HTTP' && httpGet.scheme !== 'HTTPS') {
      errors.push(notSupported(`${field}.httpGet.scheme`, httpGet.scheme, ['HTTP', 'HTTPS']));
    }
  }
  if (tcpSocket) errors.push(...portNumberOrName(tcpSocket.port, `${field}.tcpSocket.port`));
  if (grpc) errors.push(...portNumber(grpc.port, `${field}.grpc.port`));
  return errors;
}

function probeErrors(probe: Probe | undefined, field: string, mustSucceedOnce: boolean): FieldError[] {
  if (!probe) return [];
  const errors = handlerErrors(probe, field);
  for (const name of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ] as const) {
    errors.push(...nonNegative(probe[name], `${field}.${name}`));
  }
  if (mustSucceedOnce && probe.successThreshold !== 1) {
    errors.push(invalidValue(`${field}.successThreshold`, probe.successThreshold, 'must be 1'));
  }
  return errors;
}

/** What every kind of container shares. */
export function commonContainerErrors(
  container: Container,
  field: string,
  pod: PodSurroundings,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!container.name) errors.push(required(`${field}.name`));
  else errors.push(...eachInvalid(`${field}.name`, container.name, dnsLabelErrors(container.name)));
  if (container.image && container.image.trim() !== container.image) {
    errors.push(
      invalidValue(`${field}.image`, container.image, 'must not have leading or trailing whitespace'),
    );
  }
  if (container.terminationMessagePolicy && !MESSAGE_POLICIES.includes(container.terminationMessagePolicy)) {
    errors.push(
      notSupported(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, MESSAGE_POLICIES),
    );
  }
  errors.push(...portErrors(container.ports, `${field}.ports`, pod));
  errors.push(...environmentErrors(container.env, `${field}.env`));
  errors.push(...mountErrors(container.volumeMounts, pod.volumes, `${field}.volumeMounts`));
  if (container.imagePullPolicy && !PULL_POLICIES.includes(container.imagePullPolicy)) {
    errors.push(notSupported(`${field}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES));
  }
  errors.push(...resourceErrors(container.resources, `${field}.resources`));
  return errors;
}

/** A regular or init container. Models validateContainers and validateInitContainers. */
export function containerErrors(
  container: Container,
  field: string,
  pod: PodSurroundings,
  options: { probes: boolean },
): FieldError[] {
  const errors = commonContainerErrors(container, field, pod);
  if (!container.image) errors.push(required(`${field}.image`));
  const { lifecycle } = container;
  if (options.probes) {
    if (lifecycle?.postStart)
      errors.push(...handlerErrors(lifecycle.postStart, `${field}.lifecycle.postStart`));
    if (lifecycle?.preStop) errors.push(...handlerErrors(lifecycle.preStop, `${field}.lifecycle.preStop`));
    errors.push(...probeErrors(container.livenessProbe, `${field}.livenessProbe`, true));
    errors.push(...probeErrors(container.readinessProbe, `${field}.readinessProbe`, false));
    errors.push(...probeErrors(container.startupProbe, `${field}.startupProbe`, true));
    return errors;
  }
  const why = 'may not be set for init containers without restartPolicy=Always';
  for (const name of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    if (container[name]) errors.push(forbiddenField(`${field}.${name}`, why));
  }
  return errors;
}
