// client: the only way anything touches a cluster.
// `Client` over two transports (in-process over an ApiBackend, or HTTPS), the strict kubeconfig parser, informers,
// the work queue, the reconcile loop, the event recorder, leader election.
// Promises: objects that come out are frozen and shared; watch events arrive in order; an informer's cache ends up equal
// to the server's state whatever happens to its connection; everything that waits does so on a Clock, has a named
// limit, and can be stopped by who started it.
// Leaves out: exec/attach/port-forward/log streams, client-side rate limits, and credentials that must be fetched
// (`exec` plugins, token files).
// Models k8s.io/client-go: rest, tools/cache, util/workqueue, tools/record, tools/leaderelection, util/retry.
export {
  type ApiBackend,
  type ApiRequest,
  type Client,
  ConnectionError,
  type DeleteOptions,
  type Dialer,
  type Draft,
  type ListQuery,
  type ObjectRef,
  type Patch,
  type RestConfig,
  type WatchQuery,
  type WriteOptions,
} from './contract.ts';
export type { Controller, ControllerContext } from './controller.ts';
export {
  createEventRecorder,
  type EventOptions,
  type EventRecorder,
  type EventType,
} from './event-recorder.ts';
export { createHttpClient, type HttpClient } from './http-client.ts';
export { createInProcessClient, type InProcessClientOptions } from './in-process-client.ts';
export {
  createInformerFactory,
  type Informer,
  type InformerFactory,
  type InformerHandlers,
  type InformerQuery,
  InformerStoppedError,
} from './informer.ts';
export { KubeconfigError, parseKubeconfig } from './kubeconfig.ts';
export { formatKubeconfig, type KubeconfigParts } from './kubeconfig-format.ts';
export { type LeaderElection, type LeaderElectionOptions, runLeaderElection } from './leader-election.ts';
export {
  type ReconcileResult,
  type Reconciler,
  type ReconcilerOptions,
  startReconciler,
} from './reconciler.ts';
export { retryOnConflict } from './retry.ts';
export { createWorkQueue, type WorkQueue, type WorkQueueOptions } from './work-queue.ts';
