// ccm: the cloud-controller-manager.
// The CloudProvider contract (what a cloud offers), the cloud controllers over it, the providers, and the command that
// runs as a container. Promises: it talks to clusters through Client only, so it cannot tell an embedded cluster from a
// real one; log lines, events, labels and the order of writes are upstream's; everything it starts ends with the process.
// Leaves out, and says so in its log at the start: cloud-node-lifecycle-controller, service-lb-controller,
// node-route-controller and KubeVirt's kubevirt_eps_controller; also TLS and authentication of the health port, webhooks,
// leader migration, service account credentials by controller.
// A controller is a folder here and a row in command/controllers.ts, a provider a folder and a row in providers/registry.ts.
// Models k8s.io/cloud-provider v0.36 and kubevirt/cloud-provider-kubevirt v0.6.0.
export {
  type CloudProvider,
  CloudProviderError,
  type Clusters,
  DiskNotFound,
  defaultLoadBalancerName,
  ImplementedElsewhere,
  type InstanceMetadata,
  InstanceNotFound,
  type Instances,
  type InstancesV2,
  type LoadBalancer,
  NotImplemented,
  RetryError,
  type Route,
  type Routes,
  type Zone,
  type Zones,
} from './contract.ts';
export { ccmImage } from './image.ts';
