import { type Clock, errorMessage, type Logger, type Timer } from '#server/base';
import { type Client, ConnectionError } from '#server/client';
import {
  configMaps,
  type KeyToPath,
  type KubeObject,
  type Pod,
  quantityToNumber,
  type Resource,
  StatusError,
  secrets,
  serviceAccounts,
  type TokenRequest,
  type Volume,
  type VolumeProjection,
} from '#server/kube';
import type { FileSystem } from '../contract.ts';
import { createMemoryFileSystem, type MemoryFileSystem } from '../files/memory-files.ts';
import type { Mount } from '../files/mounted-files.ts';
import { normalisePath, parentPath } from '../files/path.ts';
import { fieldValue } from './downward.ts';
import type { Followed, PodObjects } from './pod-objects.ts';

const EMPTY_DIR_LIMIT = 16 * 1024 * 1024;
const PROJECTED_LIMIT = 2 * 1024 * 1024;
const DEFAULT_TOKEN_SECONDS = 3607;
/** The kubelet asks for a new token at 80 % of its life. */
const TOKEN_REFRESH = 0.8;

/** A volume that cannot be set up (yet); the message is what follows `MountVolume.SetUp failed for volume "x" : `. */
export class VolumeError extends Error {
  override readonly name = 'VolumeError';
}

export interface PodVolumes {
  /** Sets up what is not set up yet. Resolves with what is missing: volume name to reason; empty when all are there. */
  setUp(): Promise<Map<string, string>>;
  /** The mount of a volume; undefined when there is no volume of that name. */
  mount(name: string): Pick<Mount, 'files' | 'source' | 'readOnly'> | undefined;
  /** The pod's labels or annotations changed. */
  podChanged(pod: Pod): void;
  stop(): void;
}

export interface PodVolumesOptions {
  readonly pod: Pod;
  readonly client: Client;
  readonly objects: PodObjects;
  /** The machine's files, as `hostPath` shows them. */
  readonly hostFiles: FileSystem;
  readonly clock: Clock;
  readonly log: Logger;
  /** What a missing volume waits for may be there now. */
  readonly onChange: () => void;
}

type Payload = Map<string, { content: Uint8Array | string; mode: number }>;

/** The volumes of one pod. Models pkg/volume/{configmap,secret,projected,downwardapi,emptydir,hostpath} and its atomic writer. */
export function createPodVolumes(options: PodVolumesOptions): PodVolumes {
  const { client, objects, clock, log } = options;
  let pod = options.pod;
  const namespace = pod.metadata.namespace ?? 'default';
  const ready = new Map<string, Pick<Mount, 'files' | 'source' | 'readOnly'>>();
  const written = new Map<string, { files: MemoryFileSystem; last: string }>();
  const followed = new Map<string, Followed<unknown>>();
  const tokens = new Map<string, { token: string; timer: Timer }>();
  let stopped = false;

  const follow = async <T extends KubeObject>(
    resource: Resource<T>,
    name: string,
  ): Promise<T | undefined> => {
    // A refresh under way when the pod goes must not begin to follow again: nobody would let go of it.
    if (stopped) return undefined;
    const key = `${resource.plural}/${name}`;
    // The key names the resource, and a resource has one shape.
    let entry = followed.get(key) as Followed<T> | undefined;
    if (!entry) {
      entry = objects.follow(resource, namespace, name, onObject);
      followed.set(key, entry);
    }
    await entry.known;
    return entry.value === 'pending' ? undefined : entry.value;
  };
  const onObject = (): void => {
    if (stopped) return;
    void refresh();
    options.onChange();
  };
  /** Brings what is mounted already up to date: a changed Secret reaches its files, a missing one leaves them. */
  const refresh = async (): Promise<void> => {
    for (const volume of pod.spec.volumes ?? []) {
      if (!written.has(volume.name)) continue;
      try {
        write(volume, await payloadOf(volume));
      } catch (error) {
        if (!(error instanceof VolumeError))
          log.debug({ volume: volume.name, err: errorMessage(error) }, 'volume not updated');
      }
    }
  };

  const fromConfigMap = async (
    source: { name?: string; items?: KeyToPath[]; optional?: boolean },
    mode: number,
  ): Promise<Payload> => {
    const object = await follow(configMaps, source.name ?? '');
    if (!object) {
      if (source.optional) return new Map();
      throw new VolumeError(`configmap "${source.name}" not found`);
    }
    const data = new Map<string, Uint8Array | string>(Object.entries(object.data ?? {}));
    for (const [key, value] of Object.entries(object.binaryData ?? {}))
      data.set(key, Buffer.from(value, 'base64'));
    return pick(data, source, mode, 'configmap references non-existent config key');
  };
  const fromSecret = async (
    source: { name?: string; items?: KeyToPath[]; optional?: boolean },
    mode: number,
  ): Promise<Payload> => {
    const object = await follow(secrets, source.name ?? '');
    if (!object) {
      if (source.optional) return new Map();
      throw new VolumeError(`secret "${source.name}" not found`);
    }
    const data = new Map<string, Uint8Array | string>(
      Object.entries(object.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64')]),
    );
    return pick(data, source, mode, 'references non-existent secret key');
  };
  const fromDownward = (
    items: readonly {
      path: string;
      fieldRef?: { fieldPath: string };
      resourceFieldRef?: object;
      mode?: number;
    }[],
    mode: number,
  ): Payload => {
    const payload: Payload = new Map();
    for (const item of items) {
      if (item.fieldRef)
        payload.set(item.path, {
          content: fieldValue(pod, item.fieldRef.fieldPath, {}) ?? '',
          mode: item.mode ?? mode,
        });
    }
    return payload;
  };
  const fromToken = async (
    source: { audience?: string; expirationSeconds?: number; path: string },
    mode: number,
  ): Promise<Payload> => {
    const key = `${source.audience ?? ''}/${source.expirationSeconds ?? DEFAULT_TOKEN_SECONDS}`;
    const held = tokens.get(key);
    const token = held?.token ?? (await requestToken(source, key));
    return new Map([[source.path, { content: token, mode }]]);
  };
  const requestToken = async (
    source: { audience?: string; expirationSeconds?: number },
    key: string,
  ): Promise<string> => {
    const seconds = source.expirationSeconds ?? DEFAULT_TOKEN_SECONDS;
    const account = pod.spec.serviceAccountName || 'default';
    const request: TokenRequest & KubeObject = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: '' },
      spec: {
        audiences: source.audience ? [source.audience] : [],
        expirationSeconds: seconds,
        boundObjectRef: {
          apiVersion: 'v1',
          kind: 'Pod',
          name: pod.metadata.name,
          uid: pod.metadata.uid ?? '',
        },
      },
    };
    try {
      const answer = await client.createSubresource<TokenRequest & KubeObject>(
        serviceAccounts,
        { namespace, name: account },
        'token',
        request,
      );
      const token = answer.status?.token ?? '';
      const expires = answer.status?.expirationTimestamp
        ? Date.parse(answer.status.expirationTimestamp)
        : clock.now() + seconds * 1000;
      const timer = clock.after(Math.max(10_000, (expires - clock.now()) * TOKEN_REFRESH), () => {
        tokens.delete(key);
        void refresh();
      });
      tokens.get(key)?.timer.cancel();
      if (stopped) timer.cancel();
      else tokens.set(key, { token, timer });
      return token;
    } catch (error) {
      if (!(error instanceof StatusError) && !(error instanceof ConnectionError)) throw error;
      throw new VolumeError(`failed to fetch token: ${errorMessage(error)}`);
    }
  };
  const fromProjection = async (projection: VolumeProjection, mode: number): Promise<Payload> => {
    if (projection.configMap) return fromConfigMap(projection.configMap, mode);
    if (projection.secret) return fromSecret(projection.secret, mode);
    if (projection.downwardAPI) return fromDownward(projection.downwardAPI.items ?? [], mode);
    if (projection.serviceAccountToken) return fromToken(projection.serviceAccountToken, mode);
    return new Map();
  };
  const payloadOf = async (volume: Volume): Promise<Payload> => {
    if (volume.configMap) return fromConfigMap(volume.configMap, volume.configMap.defaultMode ?? 0o644);
    if (volume.secret) {
      const { secretName, ...rest } = volume.secret;
      return fromSecret({ ...rest, name: secretName ?? '' }, volume.secret.defaultMode ?? 0o644);
    }
    if (volume.downwardAPI)
      return fromDownward(volume.downwardAPI.items ?? [], volume.downwardAPI.defaultMode ?? 0o644);
    const payload: Payload = new Map();
    for (const source of volume.projected?.sources ?? []) {
      for (const [path, file] of await fromProjection(source, volume.projected?.defaultMode ?? 0o644))
        payload.set(path, file);
    }
    return payload;
  };
  const write = (volume: Volume, payload: Payload): void => {
    const known = written.get(volume.name);
    const digest = JSON.stringify(
      [...payload].map(([path, file]) => [path, file.mode, Buffer.from(file.content).toString('base64')]),
    );
    if (known?.last === digest) return;
    const files = known?.files ?? createMemoryFileSystem(undefined, { clock, limitBytes: PROJECTED_LIMIT });
    writeAtomically(files, payload, clock.now());
    written.set(volume.name, { files, last: digest });
    // The API server's view of these volumes is read-only for every container.
    ready.set(volume.name, { files, readOnly: true });
  };

  const setUpOne = async (volume: Volume): Promise<void> => {
    if (volume.emptyDir) {
      const limit = volume.emptyDir.sizeLimit
        ? Math.min(EMPTY_DIR_LIMIT, quantityToNumber(volume.emptyDir.sizeLimit))
        : EMPTY_DIR_LIMIT;
      ready.set(volume.name, { files: createMemoryFileSystem(undefined, { clock, limitBytes: limit }) });
    } else if (volume.hostPath) {
      ready.set(volume.name, {
        files: options.hostFiles,
        source: hostPath(options.hostFiles, volume.hostPath),
      });
    } else if (volume.configMap || volume.secret || volume.projected || volume.downwardAPI) {
      write(volume, await payloadOf(volume));
    } else {
      const kind = Object.keys(volume).find((key) => key !== 'name') ?? 'unknown';
      throw new VolumeError(`this lab has no volume plugin for ${kind}`);
    }
  };
  return {
    async setUp() {
      const missing = new Map<string, string>();
      for (const volume of pod.spec.volumes ?? []) {
        if (ready.has(volume.name) || stopped) continue;
        try {
          await setUpOne(volume);
        } catch (error) {
          if (!(error instanceof VolumeError)) throw error;
          missing.set(volume.name, error.message);
        }
      }
      return missing;
    },
    mount: (name) => ready.get(name),
    podChanged(next) {
      pod = next;
      if (
        (pod.spec.volumes ?? []).some(
          (volume) => volume.downwardAPI ?? volume.projected?.sources?.some((source) => source.downwardAPI),
        )
      )
        void refresh();
    },
    stop() {
      stopped = true;
      for (const entry of followed.values()) entry.release();
      for (const { timer } of tokens.values()) timer.cancel();
      followed.clear();
      tokens.clear();
    },
  };
}

function pick(
  data: ReadonlyMap<string, Uint8Array | string>,
  source: { items?: KeyToPath[]; optional?: boolean },
  mode: number,
  missing: string,
): Payload {
  if (!source.items) return new Map([...data].map(([key, content]) => [key, { content, mode }]));
  const payload: Payload = new Map();
  for (const item of source.items) {
    const content = data.get(item.key);
    if (content === undefined) {
      if (source.optional) continue;
      throw new VolumeError(`${missing}: ${item.key}`);
    }
    payload.set(item.path, { content, mode: item.mode ?? mode });
  }
  return payload;
}

/** Files appear together: a dated directory, `..data` pointing to it, and links through `..data`. */
function writeAtomically(files: MemoryFileSystem, payload: Payload, now: number): void {
  const stamp = new Date(now).toISOString().replace(/[-:TZ.]/g, '');
  let directory = `/..${stamp.slice(0, 4)}_${stamp.slice(4, 6)}_${stamp.slice(6, 8)}_${stamp.slice(8, 10)}_${stamp.slice(10, 12)}_${stamp.slice(12, 14)}.${stamp.slice(14)}`;
  while (files.exists(directory)) directory += '0';
  files.mkdir(directory);
  for (const [path, file] of payload) {
    const at = normalisePath(`${directory}/${path}`);
    files.mkdir(parentPath(at), { recursive: true });
    files.writeFile(at, file.content, { mode: file.mode });
  }
  const before = files.readdir('/').includes('..data') ? files.stat('/..data').target : undefined;
  files.symlink(directory.slice(1), '/..data_tmp');
  files.rename('/..data_tmp', '/..data');
  const tops = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path));
  for (const name of files.readdir('/')) {
    if (!name.startsWith('..') && !tops.has(name)) files.remove(`/${name}`);
  }
  const present = new Set(files.readdir('/'));
  for (const name of tops) if (!present.has(name)) files.symlink(`..data/${name}`, `/${name}`);
  if (before !== undefined) files.remove(`/${before}`, { recursive: true });
}

function hostPath(host: FileSystem, source: { path: string; type?: string }): string {
  const path = normalisePath(source.path);
  const type = source.type ?? '';
  const found = host.exists(path);
  if (!found && (type === 'DirectoryOrCreate' || type === '')) host.mkdir(path, { recursive: true });
  else if (!found && type === 'FileOrCreate') host.writeFile(path, '');
  const isDirectory = (() => {
    if (!host.exists(path)) return false;
    const stat = host.stat(path);
    return stat.type === 'symlink' ? true : stat.type === 'directory';
  })();
  if ((type === 'Directory' || type === 'DirectoryOrCreate') && !isDirectory)
    throw new VolumeError(`hostPath type check failed: ${source.path} is not a directory`);
  if (
    (type === 'File' || type === 'FileOrCreate') &&
    (!host.exists(path) || host.stat(path).type === 'directory')
  ) {
    throw new VolumeError(`hostPath type check failed: ${source.path} is not a file`);
  }
  if (type === 'Socket' && !host.exists(path))
    throw new VolumeError(`hostPath type check failed: ${source.path} is not a socket file`);
  return path;
}
