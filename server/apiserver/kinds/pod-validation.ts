import {
  type Container,
  dnsLabelErrors,
  dnsSubdomainErrors,
  type EphemeralContainer,
  type FieldError,
  type Pod,
  type PodSpec,
  type PodTemplateSpec,
  type Volume,
} from '#server/kube';
import { affinityErrors } from './affinity-validation.ts';
import { commonContainerErrors, containerErrors, type PodSurroundings } from './container-validation.ts';
import {
  duplicate,
  eachInvalid,
  forbiddenField,
  invalidValue,
  labelsAt,
  missing,
  notSupportedInOrder,
  required,
} from './field-errors.ts';
import { tolerationErrors } from './toleration-validation.ts';

const RESTART_POLICIES = ['Always', 'OnFailure', 'Never'];
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const MAX_INT32 = 2 ** 31 - 1;
const FILE_MODES = 'must be a number between 0 and 0777 (octal), both inclusive';

function fileMode(mode: number | undefined, field: string): FieldError[] {
  return mode !== undefined && (mode < 0 || mode > 0o777) ? [invalidValue(field, mode, FILE_MODES)] : [];
}

interface FileItem {
  key: string;
  path: string;
  mode?: number;
}

function itemErrors(items: readonly FileItem[] | undefined, field: string): FieldError[] {
  return (items ?? []).flatMap((item, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    if (!item.key) errors.push(required(`${at}.key`));
    if (!item.path) errors.push(required(`${at}.path`));
    else if (item.path.startsWith('/'))
      errors.push(invalidValue(`${at}.path`, item.path, 'must be a relative path'));
    else if (item.path.split('/').includes('..'))
      errors.push(invalidValue(`${at}.path`, item.path, "must not contain '..'"));
    return [...errors, ...fileMode(item.mode, `${at}.mode`)];
  });
}

function sourceErrors(volume: Volume, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const sources = Object.keys(volume).filter((key) => key !== 'name');
  for (const extra of sources.slice(1)) {
    errors.push(forbiddenField(`${field}.${extra}`, 'may not specify more than 1 volume type'));
  }
  if (volume.secret) {
    if (!volume.secret.secretName) errors.push(required(`${field}.secret.secretName`));
    errors.push(...fileMode(volume.secret.defaultMode, `${field}.secret.defaultMode`));
    errors.push(...itemErrors(volume.secret.items, `${field}.secret.items`));
  }
  if (volume.configMap) {
    if (!volume.configMap.name) errors.push(required(`${field}.configMap.name`));
    errors.push(...fileMode(volume.configMap.defaultMode, `${field}.configMap.defaultMode`));
    errors.push(...itemErrors(volume.configMap.items, `${field}.configMap.items`));
  }
  if (volume.hostPath) {
    if (!volume.hostPath.path) errors.push(required(`${field}.hostPath.path`));
    else if (volume.hostPath.path.split('/').includes('..')) {
      errors.push(invalidValue(`${field}.hostPath.path`, volume.hostPath.path, "must not contain '..'"));
    }
  }
  const claim = volume.persistentVolumeClaim;
  if (claim && !claim.claimName) errors.push(required(`${field}.persistentVolumeClaim.claimName`));
  errors.push(...fileMode(volume.projected?.defaultMode, `${field}.projected.defaultMode`));
  errors.push(...fileMode(volume.downwardAPI?.defaultMode, `${field}.downwardAPI.defaultMode`));
  return errors;
}

function volumeErrors(volumes: readonly Volume[] | undefined, field: string): FieldError[] {
  const names = new Set<string>();
  return (volumes ?? []).flatMap((volume, index) => {
    const at = `${field}[${index}]`;
    const errors = sourceErrors(volume, at);
    if (!volume.name) errors.push(required(`${at}.name`));
    else errors.push(...eachInvalid(`${at}.name`, volume.name, dnsLabelErrors(volume.name)));
    if (names.has(volume.name)) errors.push(duplicate(`${at}.name`, volume.name));
    names.add(volume.name);
    return errors;
  });
}

function hostPortConflicts(containers: readonly Container[], field: string): FieldError[] {
  const taken = new Set<string>();
  return containers.flatMap((container, index) =>
    (container.ports ?? []).flatMap((port, portIndex) => {
      if (!port.hostPort) return [];
      const key = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`;
      if (taken.has(key)) return [duplicate(`${field}[${index}].ports[${portIndex}].hostPort`, key)];
      taken.add(key);
      return [];
    }),
  );
}

function containersErrors(spec: PodSpec, field: string, pod: PodSurroundings): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const once = (name: string, at: string): void => {
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    else if (name) names.add(name);
  };
  const containers = spec.containers ?? [];
  if (containers.length === 0) errors.push(required(`${field}.containers`));
  for (const [index, container] of containers.entries()) {
    const at = `${field}.containers[${index}]`;
    errors.push(...containerErrors(container, at, pod, { probes: true }));
    once(container.name, at);
  }
  errors.push(...hostPortConflicts(containers, `${field}.containers`));
  for (const [index, container] of (spec.initContainers ?? []).entries()) {
    const at = `${field}.initContainers[${index}]`;
    errors.push(...containerErrors(container, at, pod, { probes: container.restartPolicy === 'Always' }));
    once(container.name, at);
  }
  const targets = new Set(names);
  for (const [index, container] of (spec.ephemeralContainers ?? []).entries()) {
    const at = `${field}.ephemeralContainers[${index}]`;
    errors.push(...ephemeralErrors(container, at, pod, targets));
    once(container.name, at);
  }
  return errors;
}

const NOT_EPHEMERAL = [
  'ports',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resizePolicy',
] as const;

function ephemeralErrors(
  container: EphemeralContainer,
  field: string,
  pod: PodSurroundings,
  targets: ReadonlySet<string>,
): FieldError[] {
  const errors = commonContainerErrors(container, field, pod);
  if (!container.image) errors.push(required(`${field}.image`));
  if (container.targetContainerName && !targets.has(container.targetContainerName)) {
    errors.push(missing(`${field}.targetContainerName`, container.targetContainerName));
  }
  const resources = Object.keys(container.resources ?? {}).length > 0;
  for (const name of NOT_EPHEMERAL) {
    if (container[name])
      errors.push(forbiddenField(`${field}.${name}`, 'cannot be set for an Ephemeral Container'));
  }
  if (resources)
    errors.push(forbiddenField(`${field}.resources`, 'cannot be set for an Ephemeral Container'));
  return errors;
}

/** Models ValidatePodSpec of kubernetes/pkg/apis/core/validation, without the kinds of volumes nobody has here. */
function podSpecErrors(spec: PodSpec, field: string, isPod: boolean): FieldError[] {
  const pod: PodSurroundings = {
    volumes: new Set((spec.volumes ?? []).map((volume) => volume.name)),
    hostNetwork: spec.hostNetwork === true,
    isPod,
  };
  const errors = [...volumeErrors(spec.volumes, `${field}.volumes`), ...containersErrors(spec, field, pod)];
  if (!spec.restartPolicy) errors.push(required(`${field}.restartPolicy`));
  else if (!RESTART_POLICIES.includes(spec.restartPolicy)) {
    errors.push(notSupportedInOrder(`${field}.restartPolicy`, spec.restartPolicy, RESTART_POLICIES));
  }
  if (spec.dnsPolicy && !DNS_POLICIES.includes(spec.dnsPolicy)) {
    errors.push(notSupportedInOrder(`${field}.dnsPolicy`, spec.dnsPolicy, DNS_POLICIES));
  }
  if (spec.dnsPolicy === 'None' && !spec.dnsConfig?.nameservers?.length) {
    errors.push(
      required(
        `${field}.dnsConfig.nameservers`,
        'must provide at least one DNS nameserver when `dnsPolicy` is None',
      ),
    );
  }
  errors.push(...labelsAt(spec.nodeSelector, `${field}.nodeSelector`));
  errors.push(...affinityErrors(spec.affinity, `${field}.affinity`));
  errors.push(...nameErrors(spec, field));
  if (
    spec.activeDeadlineSeconds !== undefined &&
    (spec.activeDeadlineSeconds < 1 || spec.activeDeadlineSeconds > MAX_INT32)
  ) {
    errors.push(
      invalidValue(
        `${field}.activeDeadlineSeconds`,
        spec.activeDeadlineSeconds,
        `must be between 1 and ${MAX_INT32}, inclusive`,
      ),
    );
  }
  errors.push(...tolerationErrors(spec.tolerations, `${field}.tolerations`));
  return errors;
}

function nameErrors(spec: PodSpec, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (
    name: 'serviceAccountName' | 'nodeName' | 'priorityClassName' | 'runtimeClassName',
  ): void => {
    const value = spec[name];
    if (value) errors.push(...eachInvalid(`${field}.${name}`, value, dnsSubdomainErrors(value)));
  };
  check('serviceAccountName');
  check('nodeName');
  if (spec.hostname)
    errors.push(...eachInvalid(`${field}.hostname`, spec.hostname, dnsLabelErrors(spec.hostname)));
  if (spec.subdomain)
    errors.push(...eachInvalid(`${field}.subdomain`, spec.subdomain, dnsLabelErrors(spec.subdomain)));
  check('priorityClassName');
  check('runtimeClassName');
  return errors;
}

/** Models ValidatePodTemplateSpec. Ephemeral containers only exist in pods. */
export function podTemplateErrors(template: PodTemplateSpec, field: string): FieldError[] {
  const errors = labelsAt(template.metadata?.labels, `${field}.labels`);
  if (!template.spec) return [...errors, required(`${field}.spec.containers`)];
  errors.push(...podSpecErrors(template.spec, `${field}.spec`, false));
  if (template.spec.ephemeralContainers?.length) {
    errors.push(
      forbiddenField(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
  return errors;
}

/** Models ValidatePodCreate. */
export function podErrors(pod: Pod): FieldError[] {
  return podSpecErrors(pod.spec, 'spec', true);
}
