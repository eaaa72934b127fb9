import { errorMessage } from '#server/base';
import type { Node, NodeAddress } from '#server/kube';
import {
  type CloudProvider,
  type InstanceMetadata,
  InstanceNotFound,
  type Instances,
  NotImplemented,
} from '../contract.ts';
import type { Klog } from '../klog.ts';
import { NodeSyncError } from './errors.ts';

/**
 * Asks the cloud about an uninitialised node. Undefined: the cloud wants it left alone. Rejects when the cloud does, and
 * when the node would stay without a provider ID.
 * Models getInstanceMetadata of k8s.io/cloud-provider/controllers/node.
 */
export async function instanceMetadata(
  cloud: CloudProvider,
  node: Node,
  log: Klog,
): Promise<InstanceMetadata | undefined> {
  if (!cloud.instancesV2) return firstGenerationMetadata(cloud, node, log);
  const metadata = await cloud.instancesV2.instanceMetadata(node);
  if (!metadata || metadata.providerID) return metadata;
  if (!node.spec.providerID) {
    throw new NodeSyncError(`cloud provider does not set node provider ID for node ${node.metadata.name}`);
  }
  return { ...metadata, providerID: node.spec.providerID };
}

/** The addresses alone: what the periodic loop wants to know. Undefined when the cloud has nothing to say. */
export async function instanceAddresses(
  cloud: CloudProvider,
  node: Node,
): Promise<readonly NodeAddress[] | undefined> {
  if (cloud.instancesV2) return (await cloud.instancesV2.instanceMetadata(node))?.nodeAddresses;
  return addressesOf(instancesOf(cloud), node.spec.providerID ?? '', node.metadata.name);
}

function instancesOf(cloud: CloudProvider): Instances {
  if (!cloud.instances) throw new NodeSyncError('failed to get instances from cloud provider');
  return cloud.instances;
}

async function firstGenerationMetadata(
  cloud: CloudProvider,
  node: Node,
  log: Klog,
): Promise<InstanceMetadata> {
  const { name } = node.metadata;
  const instances = instancesOf(cloud);
  const providerID = node.spec.providerID || (await lookUpProviderID(cloud, instances, name, log));
  const nodeAddresses = await addressesOf(instances, providerID, name);
  const instanceType = await byIDOrName(
    () => instances.instanceTypeByProviderID(providerID),
    () => instances.instanceType(name),
    (byID, byName) =>
      `InstanceType: Error fetching by providerID: ${byID} Error fetching by NodeName: ${byName}`,
  );
  const metadata = { providerID, instanceType, nodeAddresses, zone: '', region: '' };
  const { zones } = cloud;
  if (!zones) return metadata;
  const { failureDomain, region } = await byIDOrName(
    () => zones.zoneByProviderID(providerID),
    () => zones.zoneByNodeName(name),
    (byID, byName) =>
      `failed to get zone from cloud provider: Zone: Error fetching by providerID: ${byID} Error fetching by NodeName: ${byName}`,
  );
  return { ...metadata, zone: failureDomain, region };
}

/** A cloud that has no provider IDs says so, and its nodes are found by name from then on. */
async function lookUpProviderID(
  cloud: CloudProvider,
  instances: Instances,
  name: string,
  log: Klog,
): Promise<string> {
  try {
    return `${cloud.providerName}://${await instances.instanceID(name)}`;
  } catch (error) {
    if (error === NotImplemented) {
      const text = `cloud provider does not set node provider ID, using node name to discover node ${name}`;
      log.warning('node_controller.go:617', text);
      return '';
    }
    if (error === InstanceNotFound) throw error;
    throw new NodeSyncError(`failed to get instance ID from cloud provider: ${errorMessage(error)}`);
  }
}

function addressesOf(
  instances: Instances,
  providerID: string,
  name: string,
): Promise<readonly NodeAddress[]> {
  return byIDOrName(
    () => instances.nodeAddressesByProviderID(providerID),
    () => instances.nodeAddresses(name),
    (byID, byName) => `error fetching node by provider ID: ${byID}, and error by node name: ${byName}`,
  );
}

async function byIDOrName<T>(
  byID: () => Promise<T>,
  byName: () => Promise<T>,
  text: (byID: string, byName: string) => string,
): Promise<T> {
  try {
    return await byID();
  } catch (idError) {
    try {
      return await byName();
    } catch (nameError) {
      throw new NodeSyncError(text(errorMessage(idError), errorMessage(nameError)));
    }
  }
}
