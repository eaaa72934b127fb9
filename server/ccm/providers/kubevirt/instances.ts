import type { Client } from '#server/client';
import { type VirtualMachineInstance, virtualMachineInstances } from '#server/clouds/kubevirt';
import { isNotFound, labels, type Node, type NodeAddress, nodes } from '#server/kube';
import { CloudProviderError, InstanceNotFound, type InstancesV2 } from '../../contract.ts';
import type { Klog } from '../../klog.ts';

export interface KubevirtInstancesOptions {
  /** Of the infrastructure cluster. */
  client: Client;
  /** Of the virtual machines. */
  namespace: string;
  /** Read zone and region from the infrastructure node a machine runs on. */
  zoneAndRegionEnabled: boolean;
  log: Klog;
}

const INSTANCE_ID_LABEL = 'node.kubernetes.io/instance-id';
const INSTANCE_TYPE_ANNOTATION = 'kubevirt.io/instancetype-name';
/** The network interface whose addresses count. */
const INTERFACE = 'default';
const PROVIDER_ID = /^kubevirt:\/\/([0-9A-Za-z_-]+)$/;

/**
 * Finds a node's VirtualMachineInstance: by provider ID for its existence and power, by label, name or host name for its
 * metadata. Models kubevirt/cloud-provider-kubevirt pkg/provider/instances_v2.go and instances_getter.go.
 */
export function createKubevirtInstances(options: KubevirtInstancesOptions): InstancesV2 {
  const { client, log } = options;
  const scope = options.namespace === '' ? {} : { namespace: options.namespace };
  const byName = (name: string): Promise<VirtualMachineInstance | undefined> =>
    unlessNotFound(client.get(virtualMachineInstances, { ...scope, name }));

  const byHostname = async (hostname: string): Promise<VirtualMachineInstance> => {
    const query = { ...scope, fieldSelector: `spec.hostname=${hostname}` };
    const { items } = await client.list(virtualMachineInstances, query);
    const [only] = items;
    if (items.length > 1) {
      throw new CloudProviderError(
        `found ${items.length} virtual machine instances with the same '${hostname}' hostname`,
      );
    }
    if (!only) {
      throw new CloudProviderError(`could not find a virtual machine instance with '${hostname}' hostname`);
    }
    return only;
  };
  const find = async ({ metadata }: Node): Promise<VirtualMachineInstance> => {
    const id = metadata.labels?.[INSTANCE_ID_LABEL];
    if (id === undefined) return (await byName(metadata.name)) ?? byHostname(metadata.name);
    const instance = await byName(id);
    if (!instance) throw InstanceNotFound;
    return instance;
  };
  return {
    async instanceExists(node) {
      const id = instanceID(node);
      if (await byName(id)) return true;
      log.info('instances_v2.go:42', `Unable to find virtual machine instance ${id}`);
      return false;
    },
    async instanceShutdown(node) {
      const instance = await byName(instanceID(node));
      if (!instance) return true;
      const phase = instance.status?.phase;
      if (phase === 'Unknown') {
        throw new CloudProviderError('Instance is in unkown state (propably host down)');
      }
      const down = phase === 'Succeeded' || phase === 'Failed';
      if (down) log.info('instances_v2.go:69', `instance ${instance.metadata.name} is shut down.`);
      return down;
    },
    async instanceMetadata(node) {
      const instance = await find(node);
      const place = options.zoneAndRegionEnabled
        ? await placeOf(client, instance.status?.nodeName ?? '')
        : { zone: '', region: '' };
      return {
        providerID: `kubevirt://${instance.metadata.name}`,
        instanceType: instance.metadata.annotations?.[INSTANCE_TYPE_ANNOTATION] ?? '',
        nodeAddresses: addressesOf(instance, node),
        ...place,
      };
    },
  };
}

async function unlessNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function instanceID({ spec: { providerID = '' } }: Node): string {
  const id = PROVIDER_ID.exec(providerID)?.[1];
  if (id === undefined) {
    throw new CloudProviderError(
      `ProviderID "${providerID}" didn't match expected format "kubevirt://<instance-id>"`,
    );
  }
  return id;
}

/** Where the infrastructure node is that the machine runs on. */
async function placeOf(client: Client, nodeName: string): Promise<{ zone: string; region: string }> {
  if (nodeName === '') throw new CloudProviderError('resource name may not be empty');
  const { metadata } = await client.get(nodes, { name: nodeName });
  return { zone: metadata.labels?.[labels.zone] ?? '', region: metadata.labels?.[labels.region] ?? '' };
}

/** A machine that reports no address (its guest restarts, its agent is silent) keeps those its node has. */
function addressesOf(instance: VirtualMachineInstance, node: Node): NodeAddress[] {
  const reported = instance.status?.interfaces?.find(({ name }) => name === INTERFACE)?.ipAddresses ?? [];
  const ips = reported.filter((ip) => ip !== '').map((address) => ({ type: 'InternalIP', address }));
  const known =
    ips.length > 0 ? ips : (node.status?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
  return known.filter((one, index) => known.findIndex(({ address }) => address === one.address) === index);
}
