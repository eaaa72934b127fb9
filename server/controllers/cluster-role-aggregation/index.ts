// cluster-role-aggregation: ClusterRoles with an aggregationRule hold the rules of those it selects.
// Keeps only the selectors of such roles; what they select is read when something changes, so that the hundred roles of
// an idle cluster are not held in memory.
// Promises: writes (server-side apply of `rules`) only when they differ; rules in the order of the roles' names, each once.
// Leaves out: nothing.
// Models kubernetes/pkg/controller/clusterroleaggregation.
export { createClusterRoleAggregationController } from './cluster-role-aggregation-controller.ts';
