import type { Clock, Ids } from '#server/base';
import type { Client, EventRecorder, InformerFactory } from '#server/client';
import type { CloudProvider } from './contract.ts';
import type { Klog } from './klog.ts';
import type { CloudMetrics } from './metrics.ts';

/** What a cloud controller is given: the cluster, the cloud, time, and the log of the process. */
export interface CloudControllerContext {
  /** Of the cluster whose nodes and services are served, under the controller's own user agent. */
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly cloud: CloudProvider;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Klog;
  readonly metrics: CloudMetrics;
  /** Makes the recorder of the events a component tells of. Stopped by who asked for it. */
  recorder(component: string): EventRecorder;
}

/** A running cloud controller. */
export interface CloudController {
  /** Stops it; resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}
