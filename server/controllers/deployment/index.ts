// deployment: a ReplicaSet per pod template, and the walk from the old one to the new.
// Rolls out by RollingUpdate or Recreate, keeps revisions and their annotations, scales in proportion while a rollout is
// under way, pauses, judges progress against its deadline, forgets old revisions, reports Available, Progressing and
// ReplicaFailure.
// Promises: never more pods than replicas + maxSurge wanted, never fewer available than replicas − maxUnavailable allowed
// by its own doing; a status is written only when it differs.
// Leaves out: rolling back (kubectl does it), the podReplacementPolicy of later versions.
// Models kubernetes/pkg/controller/deployment.
export { createDeploymentController } from './deployment-controller.ts';
