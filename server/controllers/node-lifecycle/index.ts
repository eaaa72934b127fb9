// node-lifecycle: notices nodes that have fallen silent, taints what is unwell, evicts what does not bear it.
// A node whose status and lease nobody renewed for 50 s is Unknown; conditions become taints at once, without waiting for
// the next look; pods of nodes that are not ready stop being ready; pods that bear a NoExecute taint for a time only, or
// not at all, are deleted when it is up. When no node at all is ready nothing is evicted: then this side is cut off.
// Promises: one timer of 5 s; a pause of the clock is not held against the nodes; a pod's time counts from its taint.
// Leaves out: the rate limits of evictions per zone.
// Models kubernetes/pkg/controller/nodelifecycle and pkg/controller/tainteviction.
export { createNodeLifecycleController } from './node-lifecycle-controller.ts';
