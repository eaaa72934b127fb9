// tenants: which user has which cluster.
// A tenant is a namespace `handson-<user>` of the management cluster with a Cluster API Cluster and its
// cloud-controller-manager in it; `ensure` applies what is missing and leaves the rest to the controllers there.
// Nothing is remembered here: the namespace's label says whose it is, so the same code serves an embedded and a real
// management cluster. Kubeconfigs for the user's own tools carry a ServiceAccount token of their own, never the Secret's.
export { createKubeconfigs, type IssuedKubeconfig, type Kubeconfigs } from './kubeconfigs.ts';
export { createTenants, type Tenant, type Tenants } from './tenants.ts';
