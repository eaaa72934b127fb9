// The floor plan as data: dependency-cruiser enforces it (`npm run check`), `docs/map.md` is written from it
// (`npm run map`). `uses` is complete: what is not named is refused.
export const rooms = [
  { room: 'server/base', job: 'clock, ids, errors, log, disposal, bounded queues', uses: [] },
  { room: 'server/pki', job: 'keys, certificate authorities, certificates', uses: ['base'] },
  {
    room: 'server/kube',
    job: 'Kubernetes vocabulary: shapes, names, selectors, quantities, patches, managed fields, `Status` errors (pure)',
    uses: ['base'],
  },
  { room: 'server/db', job: 'the SQL handle', uses: ['base'] },
  { room: 'server/store', job: 'revisioned key/value with watch (memory, SQLite)', uses: ['base', 'db'] },
  {
    room: 'server/client',
    job: 'the only way anything touches a cluster: typed client (HTTPS or in-process), informers, work queue, reconcile loop, events, leader election, the kubeconfig parser',
    uses: ['base', 'kube'],
  },
  {
    room: 'server/apiserver',
    job: 'request in, object / `Status` / watch stream out',
    uses: ['base', 'kube', 'store', 'client'],
  },
  {
    room: 'server/controllers/machinery',
    job: 'what control loops have in common: the loop, adoption, expectations, pods of a template',
    uses: ['base', 'kube', 'client'],
  },
  {
    room: 'server/controllers/*',
    job: "kube-controller-manager's loops, one reconciler per folder",
    uses: ['base', 'pki', 'kube', 'client', 'controllers/machinery'],
  },
  { room: 'server/scheduler', job: 'bind pods to nodes', uses: ['base', 'kube', 'client'] },
  {
    room: 'server/node',
    job: 'kubelet, containers and their programs, pod network',
    uses: ['base', 'kube', 'client', 'apiserver'],
  },
  {
    room: 'server/clouds/*',
    job: 'the pretend clouds (KubeVirt: VM, VMI, booted machine)',
    uses: ['base', 'kube', 'client', 'node'],
  },
  {
    room: 'server/cluster-api',
    job: 'Cluster API, its kubeadm providers and its KubeVirt provider',
    uses: ['base', 'pki', 'kube', 'client', 'clouds/*'],
  },
  {
    room: 'server/ccm',
    job: 'the CloudProvider contract, the cloud controllers, providers, the command',
    uses: ['base', 'kube', 'client', 'node', 'clouds/*'],
  },
  {
    room: 'server/cluster',
    job: 'assemble and stop embedded clusters; the cluster process',
    uses: [
      'base',
      'pki',
      'kube',
      'db',
      'store',
      'client',
      'apiserver',
      'controllers/*',
      'scheduler',
      'node',
      'clouds/*',
      'cluster-api',
      'ccm',
    ],
  },
  {
    room: 'server/tenants',
    job: "which user has which cluster: birth; kubeconfigs for the user's own tools",
    uses: ['base', 'kube', 'client', 'cluster-api', 'clouds/*'],
  },
  {
    room: 'server/http',
    job: 'the Node server: access token, Host and Origin checks, limits, routes',
    uses: ['base', 'kube', 'client', 'tenants'],
  },
];

/** Files at the top of `server/`: the only ones that build across rooms. */
export const roots = ['server/main.ts', 'server/settings.ts'];
