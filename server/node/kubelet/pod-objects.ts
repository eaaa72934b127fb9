import type { Clock, Logger } from '#server/base';
import {
  type Client,
  createInformerFactory,
  type Informer,
  type InformerFactory,
  InformerStoppedError,
} from '#server/client';
import type { KubeObject, Resource } from '#server/kube';

import { INFORMER_RETRY } from './retry.ts';

/** Objects one node may follow at once. */
const MAX_FOLLOWED = 2048;

/** Follows the ConfigMaps and Secrets the pods of a node name, one watch an object. Models pkg/kubelet/util/manager. */
export interface PodObjects {
  /** Must be released. `onChange` is called when the object appears, changes or goes, and once it is known not to exist. */
  follow<T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    name: string,
    onChange: () => void,
  ): Followed<T>;
  stop(): void;
}

export interface Followed<T> {
  /** `pending`: not known yet. Undefined: there is none. */
  readonly value: T | undefined | 'pending';
  /** Resolves when it is known whether there is one; also when stopped. */
  readonly known: Promise<void>;
  release(): void;
}

interface Shared<T> {
  factory: InformerFactory;
  informer: Informer<T>;
  users: number;
}

export function createPodObjects(options: { client: Client; clock: Clock; log: Logger }): PodObjects {
  const shared = new Map<string, Shared<KubeObject>>();
  const follow = <T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    name: string,
    onChange: () => void,
  ): Followed<T> => {
    const key = `${resource.plural}/${namespace}/${name}`;
    let entry = shared.get(key) as Shared<T> | undefined;
    if (!entry) {
      if (shared.size >= MAX_FOLLOWED) options.log.warn({ key }, 'a node follows too many objects');
      const factory = createInformerFactory({ ...options, retryDelay: INFORMER_RETRY });
      const informer = factory.informer(resource, { namespace, fieldSelector: `metadata.name=${name}` });
      factory.start();
      entry = { factory, informer, users: 0 };
      shared.set(key, entry);
    }
    const own = entry;
    own.users += 1;
    const handler = own.informer.on({ added: onChange, updated: onChange, deleted: onChange });
    const known = own.informer.synced.then(onChange, (error: unknown) => {
      if (!(error instanceof InformerStoppedError)) throw error;
    });
    let released = false;
    return {
      get value() {
        return own.informer.hasSynced ? own.informer.get(`${namespace}/${name}`) : 'pending';
      },
      known,
      release() {
        if (released) return;
        released = true;
        handler.stop();
        own.users -= 1;
        if (own.users > 0) return;
        own.factory.stop();
        shared.delete(key);
      },
    };
  };
  return {
    follow,
    stop() {
      for (const entry of shared.values()) entry.factory.stop();
      shared.clear();
    },
  };
}
