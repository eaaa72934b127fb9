import type { Clock, Ids, Logger } from '#server/base';
import type { Client, EventRecorder } from '#server/client';
import type { GuestAccess } from '#server/clouds/kubevirt';
import type { Caches } from './caches.ts';
import type { KubeconfigServer } from './cluster-secrets.ts';
import type { Conditioned } from './conditions.ts';
import type { Cluster } from './core-resources.ts';
import { PAUSED_ANNOTATION } from './vocabulary.ts';
import type { Workloads } from './workloads.ts';

/** What every controller of this room is given. */
export interface Context {
  readonly client: Client;
  readonly caches: Caches;
  readonly workloads: Workloads;
  readonly guests: GuestAccess;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  readonly kubeconfigServer: KubeconfigServer | undefined;
  /** Write providerIDs onto Nodes for every cluster, not only those that ask by annotation. */
  readonly patchNodeProviderId: boolean;
  /** Resolves when the caches are filled. */
  ready(): Promise<void>;
  recorder(component: string): EventRecorder;
}

/** A controller that runs. */
export interface Running {
  enqueue(key: string): void;
  stop(): Promise<void>;
}

/** Why nothing may be done for the object now, in upstream's words; empty when it may. */
export function pauses(
  cluster: Cluster | undefined,
  object: Conditioned & { kind: string; metadata: { annotations?: Record<string, string> } },
): string[] {
  const reasons: string[] = [];
  if (cluster?.spec.paused) reasons.push('Cluster spec.paused is set to true');
  if (object.metadata.annotations && PAUSED_ANNOTATION in object.metadata.annotations)
    reasons.push(`${object.kind} has the ${PAUSED_ANNOTATION} annotation`);
  return reasons;
}
