// machinery: what the control loops of kube-controller-manager have in common.
// The loop around a work queue, adoption by controller reference, expectations (so that a lagging cache never makes a
// loop create or delete twice), pods made from templates, facts about pods and taints, hashes of templates.
// Promises: nothing here keeps a timer at rest; objects given are never modified.
// Leaves out: what any single controller decides.
// Models kubernetes/pkg/controller (controller_utils.go, controller_ref_manager.go) and pkg/api/v1/pod.
export { type AdoptionOptions, claim } from './adoption.ts';
export { type Discovered, type Discovery, discover } from './discovery.ts';
export { createExpectations, type Expectations } from './expectations.ts';
export { type Follower, type FollowOptions, follow } from './follow.ts';
export { hashTemplate } from './hash.ts';
export { type Arrange, createLoop, ensureIndex, type LoopOptions } from './loop.ts';
export { createPodControl, isNamespaceTerminating, type PodControl, podFromTemplate } from './pod-control.ts';
export {
  availableAfter,
  isActive,
  isAvailable,
  isFinished,
  isReady,
  isTerminating,
  podCondition,
} from './pods.ts';
export {
  canServe,
  createTriggerTimes,
  hostnameIn,
  isHeadless,
  isPublished,
  portOn,
  publishedFactsDiffer,
  servicesSelecting,
  type TriggerTimes,
} from './service-pods.ts';
export { slowStart } from './slow-start.ts';
