// cluster: the embedded clusters, assembled; and the process they live in.
// `startClusterProcess` runs `main.ts` of this room as a child and hands back the way in: a kubeconfig for the
// management cluster, over HTTPS like anybody else's. Nothing of the clusters is loaded into the calling process.
// Inside the child, embedded.ts puts the parts together: store, API servers under one listener, controllers, scheduler,
// kubelets, KubeVirt, Cluster API; machine-host.ts boots the pretend machines whose kubeadm makes tenant clusters.
export { type ClusterProcess, type ClusterProcessOptions, startClusterProcess } from './cluster-process.ts';
