import type { Informer } from '#server/client';
import { objectKey, type Pod } from '#server/kube';
import type { MirrorPods } from './mirror-pods.ts';
import type { PodContext } from './pod-context.ts';
import { createPodWorker, type PodWorker } from './pod-worker.ts';
import { CONFIG_MIRROR } from './static-pods.ts';

/** The pods of one node from both sources, each with its worker. Models pkg/kubelet/pod/pod_manager.go and the sync loop. */
export interface PodManager {
  /** The manifests of the machine, all of them. */
  setStaticPods(pods: readonly Pod[]): void;
  follow(informer: Informer<Pod>): void;
  /** The worker that serves `exec` and `logs` of a pod. */
  find(namespace: string, name: string): PodWorker | undefined;
  /** Pods holding resources, without the one of this uid. */
  others(uid: string): Pod[];
  /** The node changed. */
  wake(): void;
  stop(graceMilliseconds: number): Promise<void>;
}

export function createPodManager(
  makeContext: (manager: PodManager) => PodContext,
  mirrors: MirrorPods,
): PodManager {
  const workers = new Map<string, PodWorker>();
  const statics = new Map<string, Pod>();
  const replacing = new Set<string>();
  let informer: Informer<Pod> | undefined;
  let stopped = false;

  const isMirror = (pod: Pod): boolean => pod.metadata.annotations?.[CONFIG_MIRROR] !== undefined;
  const staticWorker = (key: string): PodWorker | undefined => {
    const wanted = statics.get(key);
    return wanted && workers.get(wanted.metadata.uid ?? '');
  };
  const start = (pod: Pod, isStatic: boolean): void => {
    const uid = pod.metadata.uid ?? '';
    if (stopped || workers.has(uid)) return;
    workers.set(uid, createPodWorker(context, pod, { isStatic, onFinished: () => undefined }));
  };
  const drop = (uid: string): Promise<void> | undefined => {
    const worker = workers.get(uid);
    if (!worker) return undefined;
    return worker.remove().then(() => void workers.delete(uid));
  };
  const lookAtMirror = (key: string): void => {
    if (stopped) return;
    const wanted = statics.get(key);
    const current = informer?.get(key);
    const mirror = current && isMirror(current) ? current : undefined;
    if (!wanted) {
      if (mirror && !replacing.has(key)) mirrors.forget(mirror);
      return;
    }
    mirrors.reconcile(wanted, current);
    const fits =
      mirror?.metadata.annotations?.[CONFIG_MIRROR] === wanted.metadata.uid &&
      mirror?.metadata.deletionTimestamp === undefined;
    staticWorker(key)?.setMirror(fits ? mirror : undefined);
  };
  const replaceStatic = async (key: string, before: Pod, next: Pod | undefined): Promise<void> => {
    replacing.add(key);
    await drop(before.metadata.uid ?? '');
    replacing.delete(key);
    // Meanwhile the manifest may have changed again: the latest counts.
    const wanted = statics.get(key);
    if (wanted && wanted === next) start(wanted, true);
    lookAtMirror(key);
  };

  const manager: PodManager = {
    setStaticPods(pods) {
      const next = new Map(pods.map((pod) => [objectKey(pod), pod]));
      for (const [key, before] of [...statics]) {
        const now = next.get(key);
        if (now?.metadata.uid === before.metadata.uid) continue;
        if (now) statics.set(key, now);
        else statics.delete(key);
        void replaceStatic(key, before, now);
      }
      for (const [key, pod] of next) {
        if (statics.has(key)) continue;
        statics.set(key, pod);
        if (!replacing.has(key)) start(pod, true);
        lookAtMirror(key);
      }
    },
    follow(source) {
      informer = source;
      source.on({
        added(pod) {
          if (isMirror(pod)) lookAtMirror(objectKey(pod));
          else start(pod, false);
        },
        updated(_before, pod) {
          if (isMirror(pod)) lookAtMirror(objectKey(pod));
          else if (workers.has(pod.metadata.uid ?? '')) workers.get(pod.metadata.uid ?? '')?.update(pod);
          else start(pod, false);
        },
        deleted(pod) {
          if (isMirror(pod)) lookAtMirror(objectKey(pod));
          else void drop(pod.metadata.uid ?? '');
        },
      });
      void source.synced.then(
        () => {
          for (const key of statics.keys()) lookAtMirror(key);
        },
        () => undefined,
      );
    },
    find(namespace, name) {
      const own = staticWorker(`${namespace}/${name}`);
      if (own) return own;
      let found: PodWorker | undefined;
      for (const worker of workers.values()) {
        const { metadata } = worker.pod;
        if (metadata.name !== name || (metadata.namespace ?? 'default') !== namespace) continue;
        if (!found || found.finished) found = worker;
      }
      return found;
    },
    others: (uid) =>
      [...workers.values()]
        .filter((worker) => worker.uid !== uid && !worker.finished)
        .map((worker) => worker.pod),
    wake() {
      for (const key of statics.keys()) lookAtMirror(key);
      for (const worker of workers.values()) worker.wake();
    },
    async stop(grace) {
      stopped = true;
      await Promise.all([...workers.values()].map((worker) => worker.shutdown(grace)));
      workers.clear();
    },
  };
  const context = makeContext(manager);
  return manager;
}
