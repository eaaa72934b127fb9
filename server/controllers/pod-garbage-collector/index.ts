// pod-garbage-collector: removes pods nobody else will.
// Those on nodes that are gone (after 40 s of quarantine, and after asking the API), those being deleted without ever
// having had a node, those stuck on nodes marked out of service, and the oldest ended ones beyond 12,500.
// Promises: a timer only while some node is in quarantine.
// Leaves out: metrics.
// Models kubernetes/pkg/controller/podgc.
export { createPodGarbageCollector } from './pod-garbage-collector.ts';
