import {
  type Container,
  configMaps,
  type EnvVar,
  type KubeObject,
  type Pod,
  quantityToMilli,
  type Resource,
  type Service,
  secrets,
} from '#server/kube';
import { fieldValue, type NodeSide } from './downward.ts';
import { expandReferences } from './expansion.ts';
import type { Followed, PodObjects } from './pod-objects.ts';

/** Why a container cannot be configured: CreateContainerConfigError's message. */
export class ContainerConfigError extends Error {
  override readonly name = 'ContainerConfigError';
}

export interface EnvironmentOptions {
  readonly pod: Pod;
  readonly container: Container;
  readonly image: Readonly<Record<string, string>>;
  readonly services: readonly Service[];
  readonly objects: PodObjects;
  readonly node: NodeSide;
  /** The node's allocatable, for resourceFieldRef without a limit. */
  readonly allocatable: Readonly<Record<string, string>>;
}

/**
 * The environment of a container: the image's, the services', envFrom and env, later ones winning. Rejects with
 * ContainerConfigError. Models pkg/kubelet/kubelet_pods.go makeEnvironmentVariables.
 */
export async function makeEnvironment(options: EnvironmentOptions): Promise<Record<string, string>> {
  const { pod, container } = options;
  const namespace = pod.metadata.namespace ?? 'default';
  const held: Followed<unknown>[] = [];
  const load: Load = async (resource, name) => {
    const followed = options.objects.follow(resource, namespace, name, () => undefined);
    held.push(followed);
    await followed.known;
    return followed.value === 'pending' ? undefined : followed.value;
  };
  try {
    const result: Record<string, string> = {};
    for (const source of container.envFrom ?? []) {
      const prefix = source.prefix ?? '';
      for (const [key, value] of await everyKey(source, load)) result[`${prefix}${key}`] = value;
    }
    const serviceEnv = serviceVariables(options.services, namespace, pod.spec.enableServiceLinks !== false);
    for (const variable of container.env ?? []) {
      const value = variable.valueFrom
        ? await valueFrom(variable, options, load, namespace)
        : expandReferences(variable.value ?? '', { ...serviceEnv, ...result });
      if (value !== undefined) result[variable.name] = value;
    }
    return { ...options.image, ...serviceEnv, ...result };
  } finally {
    for (const followed of held) followed.release();
  }
}

type Load = <T extends KubeObject>(resource: Resource<T>, name: string) => Promise<T | undefined>;

async function everyKey(
  source: NonNullable<Container['envFrom']>[number],
  load: Load,
): Promise<[string, string][]> {
  if (source.configMapRef) {
    const name = source.configMapRef.name ?? '';
    const map = await load(configMaps, name);
    if (map) return Object.entries(map.data ?? {});
    if (source.configMapRef.optional) return [];
    throw new ContainerConfigError(`configmap "${name}" not found`);
  }
  if (source.secretRef) {
    const name = source.secretRef.name ?? '';
    const secret = await load(secrets, name);
    if (secret)
      return Object.entries(secret.data ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString('utf8'),
      ]);
    if (source.secretRef.optional) return [];
    throw new ContainerConfigError(`secret "${name}" not found`);
  }
  return [];
}

async function valueFrom(
  variable: EnvVar,
  options: EnvironmentOptions,
  load: Load,
  namespace: string,
): Promise<string | undefined> {
  const source = variable.valueFrom ?? {};
  if (source.fieldRef) {
    const value = fieldValue(options.pod, source.fieldRef.fieldPath, options.node);
    if (value === undefined)
      throw new ContainerConfigError(`unsupported fieldPath: ${source.fieldRef.fieldPath}`);
    return value;
  }
  if (source.resourceFieldRef) return resourceValue(source.resourceFieldRef, options);
  if (source.configMapKeyRef) {
    const { name = '', key, optional } = source.configMapKeyRef;
    const map = await load(configMaps, name);
    if (map?.data?.[key] !== undefined) return map.data[key];
    if (optional) return undefined;
    throw new ContainerConfigError(
      map ? `couldn't find key ${key} in ConfigMap ${namespace}/${name}` : `configmap "${name}" not found`,
    );
  }
  if (source.secretKeyRef) {
    const { name = '', key, optional } = source.secretKeyRef;
    const secret = await load(secrets, name);
    const value = secret?.data?.[key];
    if (value !== undefined) return Buffer.from(value, 'base64').toString('utf8');
    if (optional) return undefined;
    throw new ContainerConfigError(
      secret ? `couldn't find key ${key} in Secret ${namespace}/${name}` : `secret "${name}" not found`,
    );
  }
  return undefined;
}

function resourceValue(
  ref: { containerName?: string; resource: string; divisor?: string },
  options: EnvironmentOptions,
): string {
  const [kind, ...rest] = ref.resource.split('.');
  const resource = rest.join('.');
  const named = ref.containerName
    ? [...(options.pod.spec.initContainers ?? []), ...options.pod.spec.containers].find(
        (container) => container.name === ref.containerName,
      )
    : options.container;
  const values = kind === 'limits' ? named?.resources?.limits : named?.resources?.requests;
  const quantity =
    values?.[resource] ?? (kind === 'limits' ? options.allocatable[resource] : undefined) ?? '0';
  const divisor = quantityToMilli(ref.divisor && ref.divisor !== '0' ? ref.divisor : '1');
  const milli = quantityToMilli(quantity);
  return String((milli + divisor - 1n) / divisor);
}

/** `HELLO_SERVICE_HOST` and the rest. Models pkg/kubelet/envvars. */
export function serviceVariables(
  services: readonly Service[],
  namespace: string,
  links: boolean,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const service of services) {
    const own = service.metadata.namespace ?? 'default';
    const isMaster = own === 'default' && service.metadata.name === 'kubernetes';
    if (!isMaster && !(links && own === namespace)) continue;
    const ip = service.spec?.clusterIP;
    if (!ip || ip === 'None') continue;
    const prefix = service.metadata.name.toUpperCase().replaceAll('-', '_');
    const ports = service.spec?.ports ?? [];
    const first = ports[0];
    if (!first) continue;
    env[`${prefix}_SERVICE_HOST`] = ip;
    env[`${prefix}_SERVICE_PORT`] = String(first.port);
    for (const port of ports)
      if (port.name)
        env[`${prefix}_SERVICE_PORT_${port.name.toUpperCase().replaceAll('-', '_')}`] = String(port.port);
    env[`${prefix}_PORT`] = `${(first.protocol ?? 'TCP').toLowerCase()}://${ip}:${first.port}`;
    for (const port of ports) {
      const protocol = port.protocol ?? 'TCP';
      const key = `${prefix}_PORT_${port.port}_${protocol}`;
      env[key] = `${protocol.toLowerCase()}://${ip}:${port.port}`;
      env[`${key}_PROTO`] = protocol.toLowerCase();
      env[`${key}_PORT`] = String(port.port);
      env[`${key}_ADDR`] = ip;
    }
  }
  return env;
}
