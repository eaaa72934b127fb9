// controllers/testing: a cluster in memory for the tests of controllers.
// The real API server over the memory store, with its bootstrap roles; controllers run under their own service accounts
// as they do in a cluster, so a missing permission fails a test.

export { deployment, node, podTemplate } from './builders.ts';
export { type Cluster, type ClusterOptions, startCluster } from './cluster.ts';
export { widgetDefinition, widgets } from './crd.ts';
export { actAsKubelet, type Kubelet } from './kubelet.ts';
