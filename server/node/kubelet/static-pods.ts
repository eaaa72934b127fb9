import { createHash } from 'node:crypto';
import { parse } from 'yaml';
import { errorMessage, type Logger } from '#server/base';
import type { Container, Pod } from '#server/kube';
import { FileError, type FileSystem } from '../contract.ts';

const CONFIG_SOURCE = 'kubernetes.io/config.source';
export const CONFIG_HASH = 'kubernetes.io/config.hash';
const CONFIG_SEEN = 'kubernetes.io/config.seen';
export const CONFIG_MIRROR = 'kubernetes.io/config.mirror';
/** Manifests one machine may have. */
const MAX_MANIFESTS = 100;
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** The pods a directory of manifests describes, kept up to date. Models pkg/kubelet/config/file.go and common.go. */
export function watchStaticPods(options: {
  files: FileSystem;
  path: string;
  nodeName: string;
  now: () => number;
  log: Logger;
  onPods: (pods: Pod[]) => void;
}): { stop(): void } {
  const seen = new Map<string, string>();
  let scheduled = false;
  let stopped = false;
  const scan = (): void => {
    scheduled = false;
    if (stopped) return;
    options.onPods(readManifests(options, seen));
  };
  const watch = options.files.watch(options.path, () => {
    if (scheduled) return;
    scheduled = true;
    // One turn later: several files written together are read once.
    setImmediate(scan);
  });
  scan();
  return {
    stop() {
      stopped = true;
      watch.stop();
    },
  };
}

function readManifests(
  options: { files: FileSystem; path: string; nodeName: string; now: () => number; log: Logger },
  seen: Map<string, string>,
): Pod[] {
  const { files, path, log } = options;
  const pods: Pod[] = [];
  let names: string[];
  try {
    names = files.readdir(path);
  } catch (error) {
    if (error instanceof FileError) return [];
    throw error;
  }
  for (const name of names.filter((one) => !one.startsWith('.')).slice(0, MAX_MANIFESTS)) {
    const file = `${path}/${name}`;
    try {
      if (files.stat(file).type === 'directory') continue;
      const content = files.readFile(file);
      if (content.length > MAX_MANIFEST_BYTES) continue;
      pods.push(toStaticPod(Buffer.from(content).toString('utf8'), file, options, seen));
    } catch (error) {
      log.warn({ file, err: errorMessage(error) }, 'manifest could not be read');
    }
  }
  return pods;
}

/** Throws when the text is no Pod. */
function toStaticPod(
  text: string,
  file: string,
  options: { nodeName: string; now: () => number },
  seen: Map<string, string>,
): Pod {
  const manifest = parse(text) as Partial<Pod> | null;
  if (manifest?.kind !== 'Pod' || !manifest.metadata?.name || !Array.isArray(manifest.spec?.containers)) {
    throw new FileError('EINVAL', file);
  }
  const uid = createHash('md5').update(`${options.nodeName}\n${file}\n${text}`).digest('hex');
  const since = seen.get(uid) ?? `${new Date(options.now()).toISOString().slice(0, 23)}000000Z`;
  seen.set(uid, since);
  const spec = manifest.spec;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...manifest.metadata,
      name: `${manifest.metadata.name}-${options.nodeName}`,
      namespace: manifest.metadata.namespace ?? 'default',
      uid,
      annotations: {
        ...manifest.metadata.annotations,
        [CONFIG_HASH]: uid,
        [CONFIG_SEEN]: since,
        [CONFIG_SOURCE]: 'file',
      },
    },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      enableServiceLinks: true,
      ...spec,
      nodeName: options.nodeName,
      tolerations: [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }],
      containers: spec.containers.map(withDefaults),
      ...(spec.initContainers ? { initContainers: spec.initContainers.map(withDefaults) } : {}),
    },
  };
}

function withDefaults(container: Container): Container {
  const untagged = !/:[^/]+$/.test(container.image ?? '') || (container.image ?? '').endsWith(':latest');
  return {
    imagePullPolicy: untagged && !(container.image ?? '').includes('@') ? 'Always' : 'IfNotPresent',
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    ...container,
  };
}
