import { type Clock, errorMessage, type Logger } from '#server/base';
import type { Client } from '#server/client';
import { isAlreadyExists, isNotFound, type Node, type Pod, pods } from '#server/kube';
import { untilDone } from './retry.ts';
import { CONFIG_HASH, CONFIG_MIRROR } from './static-pods.ts';

/** The API's picture of static pods: made when missing, replaced when stale. Models pkg/kubelet/pod/mirror_client.go. */
export interface MirrorPods {
  /** Looks at one static pod's mirror; `current` is what the API has under its name. */
  reconcile(staticPod: Pod, current: Pod | undefined): void;
  /** The static pod is gone: so goes its mirror. */
  forget(mirror: Pod): void;
  stop(): void;
}

export function createMirrorPods(options: {
  client: Client;
  node: () => Node | undefined;
  clock: Clock;
  log: Logger;
}): MirrorPods {
  const { client, clock, log } = options;
  const stopping = new AbortController();
  const working = new Map<string, AbortController>();

  const remove = async (mirror: Pod): Promise<void> => {
    try {
      await client.delete(
        pods,
        { namespace: mirror.metadata.namespace, name: mirror.metadata.name },
        {
          gracePeriodSeconds: 0,
          ...(mirror.metadata.uid ? { preconditions: { uid: mirror.metadata.uid } } : {}),
        },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const create = async (staticPod: Pod): Promise<void> => {
    const node = options.node();
    if (!node) return;
    const { uid, annotations, ...metadata } = staticPod.metadata;
    try {
      await client.create(pods, {
        ...staticPod,
        metadata: {
          ...metadata,
          annotations: { ...annotations, [CONFIG_MIRROR]: annotations?.[CONFIG_HASH] ?? uid ?? '' },
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'Node',
              name: node.metadata.name,
              uid: node.metadata.uid ?? '',
              controller: true,
            },
          ],
        },
      });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  };
  const run = (name: string, attempt: () => Promise<void>): void => {
    working.get(name)?.abort();
    const own = new AbortController();
    working.set(name, own);
    const signal = AbortSignal.any([own.signal, stopping.signal]);
    void untilDone(clock, signal, attempt, (error) =>
      log.debug({ pod: name, err: errorMessage(error) }, 'mirror pod not reconciled'),
    ).finally(() => {
      if (working.get(name) === own) working.delete(name);
    });
  };
  return {
    reconcile(staticPod, current) {
      if (!options.node()) return;
      const key = `${staticPod.metadata.namespace}/${staticPod.metadata.name}`;
      const fits =
        current !== undefined &&
        current.metadata.deletionTimestamp === undefined &&
        current.metadata.annotations?.[CONFIG_MIRROR] === staticPod.metadata.annotations?.[CONFIG_HASH];
      if (fits || (!current && working.has(key))) return;
      run(key, async () => {
        if (current) await remove(current);
        await create(staticPod);
      });
    },
    forget(mirror) {
      run(`${mirror.metadata.namespace}/${mirror.metadata.name}`, () => remove(mirror));
    },
    stop: () => stopping.abort(),
  };
}
