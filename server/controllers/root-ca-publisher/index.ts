// root-ca-publisher: every namespace has the ConfigMap kube-root-ca.crt, which pods verify the API server with.
// Promises: comes back when deleted, is put right when changed; no write when it is as it should be.
// Leaves out: trust bundles (ClusterTrustBundle).
// Models kubernetes/pkg/controller/certificates/rootcacertpublisher.
export { createRootCaPublisher } from './root-ca-publisher.ts';
