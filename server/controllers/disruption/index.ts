// disruption: what PodDisruptionBudgets allow at the moment.
// Counts the ready pods of each budget against the number that must stay and writes disruptionsAllowed, which the API
// server's eviction spends.
// Promises: a pod that was evicted counts as gone from that moment; a budget that cannot be counted allows nothing.
// Leaves out: pods of controllers other than ReplicaSet and Deployment for budgets in percent or maxUnavailable (they
// allow nothing), and the condition DisruptionTarget of stale evictions.
// Models kubernetes/pkg/controller/disruption.
export { createDisruptionController } from './disruption-controller.ts';
