// replica-set: as many pods as a ReplicaSet asks for.
// Creates missing pods in slowly growing batches and deletes surplus ones, the least useful first; adopts matching
// orphans and releases pods whose labels changed; reports counts and ReplicaFailure in the status.
// Promises: never creates or deletes twice however late its cache is; writes a status only when it differs.
// Leaves out: ReplicationControllers.
// Models kubernetes/pkg/controller/replicaset.
export { createReplicaSetController } from './replica-set-controller.ts';
