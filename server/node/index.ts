// node: one machine of a cluster: the kubelet, the containers it runs, their files and programs, and the network they share.
// It promises what kubelet, containerd and a CNI promise to the API and to `kubectl logs/exec/attach/port-forward/debug`:
// pods become running programs with real files, a real (simulated) network and upstream's statuses, conditions and events.
// Programs are ours and come from an image catalogue; shells run in terminable worker threads; nothing of the host is
// reachable from inside. Left out: resource enforcement, cgroups, seccomp, device plugins, image garbage collection,
// CSI mounts (drivers register; volumes of PersistentVolumeClaims are not mounted).
// Models kubernetes/pkg/kubelet, containerd's CRI, kube-proxy/cilium's service routing and the images' own programs.
export {
  type Connection,
  type DatagramHandler,
  FileError,
  type FileStat,
  type FileSystem,
  type Image,
  type ImageCatalogue,
  type Listener,
  type ListenOptions,
  NetworkError,
  type NetworkNamespace,
  type ProbeAnswer,
  type Process,
  type Program,
  type SpawnOptions,
  type Terminal,
} from './contract.ts';
export {
  createMemoryFileSystem,
  type MemoryFileSystem,
  type MemoryFileSystemOptions,
  restoreFileSystem,
} from './files/memory-files.ts';
export {
  createLazyFiles,
  createMountedFiles,
  createRootedFiles,
  type Mount,
  readText,
} from './files/mounted-files.ts';
export { createImageCatalogue } from './images/catalogue.ts';
export { standardImages } from './images/standard.ts';
export type { Kubelet, KubeletConfig, KubeletHost, KubeletOptions, PodIdentity } from './kubelet/contract.ts';
export { KubeletFlagError } from './kubelet/flags.ts';
export { createKubelet, KubeletStoppedError } from './kubelet/kubelet.ts';
export type {
  AttachedNamespace,
  AttachOptions,
  NamespaceKind,
  Network,
  ResolverConfig,
  Route,
  RouteRequest,
  Router,
} from './network/contract.ts';
export { createNetwork, noNetwork } from './network/network.ts';
export { createServiceProxy } from './network/service-proxy.ts';
export { busyboxPrograms } from './programs/busybox.ts';
export { serveHttp, untilStopped } from './programs/http-server.ts';
export { inClusterConfig } from './programs/in-cluster.ts';
export { pause } from './programs/pause.ts';
