import type { InformerFactory } from '#server/client';
import type { LoadBalancerStatus, Node, NodeAddress, Service } from '#server/kube';

/**
 * What a cloud offers to the cloud controllers. A capability that is left out is one the cloud does not have: the
 * controllers that need it do not start. Nodes and Services given to it are read-only.
 * Models k8s.io/cloud-provider/cloud.go (Interface).
 */
export interface CloudProvider {
  readonly providerName: string;
  /** False: the command refuses to run unless told to allow it. */
  readonly hasClusterID: boolean;
  /** Called once, when this process leads, before any controller starts. What it starts must end with `signal`. */
  initialize?(signal: AbortSignal): void;
  /** Called before the informers start. */
  setInformers?(informers: InformerFactory): void;
  readonly instancesV2?: InstancesV2;
  /** Older than `instancesV2`, and asked only when that is not there. */
  readonly instances?: Instances;
  /** Only asked together with `instances`. */
  readonly zones?: Zones;
  readonly loadBalancer?: LoadBalancer;
  readonly routes?: Routes;
  readonly clusters?: Clusters;
}

/** What a cloud knows of one machine. Empty strings and lists stand for "nothing to say". */
export interface InstanceMetadata {
  /** `<provider>://<whatever the provider needs>`. */
  providerID: string;
  instanceType: string;
  nodeAddresses: readonly NodeAddress[];
  zone: string;
  region: string;
  additionalLabels?: Readonly<Record<string, string>>;
}

/** Machines by the Node that runs on them. The Node may or may not have a `spec.providerID` yet. */
export interface InstancesV2 {
  /**
   * Whether the machine is still there, running or not. A machine that is gone is `false`, never an error: `false`
   * deletes the Node once it is not ready, an error leaves it alone.
   */
  instanceExists(node: Node): Promise<boolean>;
  /** Whether the machine is there but switched off. */
  instanceShutdown(node: Node): Promise<boolean>;
  /**
   * What to write to the Node. Rejects when the cloud cannot say (also with `InstanceNotFound`): the Node stays tainted
   * and is tried again. Undefined: leave the Node as it is, until it changes.
   */
  instanceMetadata(node: Node): Promise<InstanceMetadata | undefined>;
}

/** The first generation of `InstancesV2`. A missing machine rejects with `InstanceNotFound`. */
export interface Instances {
  nodeAddresses(nodeName: string): Promise<NodeAddress[]>;
  nodeAddressesByProviderID(providerID: string): Promise<NodeAddress[]>;
  /** The part of the provider ID behind `://`; rejects with `NotImplemented` where a cloud has none. */
  instanceID(nodeName: string): Promise<string>;
  instanceType(nodeName: string): Promise<string>;
  instanceTypeByProviderID(providerID: string): Promise<string>;
  instanceExistsByProviderID(providerID: string): Promise<boolean>;
  instanceShutdownByProviderID(providerID: string): Promise<boolean>;
}

export interface Zone {
  failureDomain: string;
  region: string;
}

export interface Zones {
  zoneByProviderID(providerID: string): Promise<Zone>;
  zoneByNodeName(nodeName: string): Promise<Zone>;
}

/** Load balancers, one for each Service of type LoadBalancer. */
export interface LoadBalancer {
  /** Undefined: there is none; never an error for that, which would keep a Service from being deleted. */
  getLoadBalancer(clusterName: string, service: Service): Promise<LoadBalancerStatus | undefined>;
  getLoadBalancerName(clusterName: string, service: Service): string;
  /**
   * Creates it or brings it up to date. Rejects with `ImplementedElsewhere` (that very object) when another controller
   * serves this Service, with a RetryError to be asked again after a fixed time.
   */
  ensureLoadBalancer(
    clusterName: string,
    service: Service,
    nodes: readonly Node[],
  ): Promise<LoadBalancerStatus>;
  /** Changes only which nodes it leads to. May reject with `ImplementedElsewhere`. */
  updateLoadBalancer(clusterName: string, service: Service, nodes: readonly Node[]): Promise<void>;
  /** Resolves when nothing is left of it, also when there never was one. */
  ensureLoadBalancerDeleted(clusterName: string, service: Service): Promise<void>;
}

export interface Route {
  /** The cloud's name for it; ignored on creation. */
  name: string;
  targetNode: string;
  /** Whether `targetNodeAddresses` counts. */
  enableNodeAddresses: boolean;
  targetNodeAddresses: readonly NodeAddress[];
  destinationCIDR: string;
  /** Its target is gone. */
  blackhole: boolean;
}

export interface Routes {
  listRoutes(clusterName: string): Promise<Route[]>;
  /** `nameHint` may become part of the route's name. */
  createRoute(clusterName: string, nameHint: string, route: Route): Promise<void>;
  /** `route` as `listRoutes` gave it. */
  deleteRoute(clusterName: string, route: Route): Promise<void>;
}

export interface Clusters {
  listClusters(): Promise<string[]>;
  /** The address of a cluster's control plane. */
  master(clusterName: string): Promise<string>;
}

/** What a cloud says when it cannot do what it was asked; the sentinels below are compared by identity. */
export class CloudProviderError extends Error {
  override readonly name = 'CloudProviderError';
}

export const InstanceNotFound = new CloudProviderError('instance not found');
export const DiskNotFound = new CloudProviderError('disk is not found');
export const ImplementedElsewhere = new CloudProviderError('implemented by alternate to cloud provider');
export const NotImplemented = new CloudProviderError('unimplemented');

/**
 * Asks to be called again after a fixed time instead of an ever longer one. Honoured on the way to a load balancer only.
 * Models k8s.io/cloud-provider/api (RetryError).
 */
export class RetryError extends Error {
  override readonly name = 'RetryError';
  /** Milliseconds. */
  readonly retryAfter: number;
  constructor(message: string, retryAfter: number) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

/** Models DefaultLoadBalancerName: `a` and the Service's uid without dashes, at most 32 characters. */
export function defaultLoadBalancerName(service: Service): string {
  return `a${service.metadata.uid ?? ''}`.replaceAll('-', '').slice(0, 32);
}
