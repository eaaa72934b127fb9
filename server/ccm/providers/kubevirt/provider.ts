import { errorMessage } from '#server/base';
import { type Client, parseKubeconfig, type RestConfig } from '#server/client';
import { type CloudProvider, CloudProviderError } from '../../contract.ts';
import type { ProviderEnvironment } from '../environment.ts';
import { type KubevirtCloudConfig, parseCloudConfig } from './cloud-config.ts';
import { createKubevirtInstances } from './instances.ts';

/**
 * The KubeVirt cloud: the tenant's nodes are VirtualMachineInstances of an infrastructure cluster, named in the
 * cloud-config or the one this process runs in. Throws CloudProviderError without a usable cloud-config.
 * Models kubevirt/cloud-provider-kubevirt pkg/provider/cloud.go.
 */
export function createKubevirtProvider(environment: ProviderEnvironment): CloudProvider {
  if (environment.config === undefined) {
    throw new CloudProviderError('No kubevirt cloud provider config file given');
  }
  const config = readConfig(environment.config);
  const { client, namespace } = infrastructure(config, environment);
  const { enabled, zoneAndRegionEnabled } = config.instancesV2;
  const { log } = environment;
  return {
    providerName: 'kubevirt',
    hasClusterID: true,
    ...(enabled
      ? { instancesV2: createKubevirtInstances({ client, namespace, zoneAndRegionEnabled, log }) }
      : {}),
  };
}

function readConfig(text: string): KubevirtCloudConfig {
  try {
    return parseCloudConfig(text);
  } catch (error) {
    throw new CloudProviderError(`Failed to unmarshal cloud provider config: ${errorMessage(error)}`);
  }
}

/** The infrastructure cluster, and where in it the machines are. In the own cluster an unnamed namespace stays unnamed. */
function infrastructure(
  config: KubevirtCloudConfig,
  environment: ProviderEnvironment,
): { client: Client; namespace: string } {
  if (config.kubeconfig === '') return { client: environment.inCluster(), namespace: config.namespace };
  const text = environment.readFile(config.kubeconfig);
  if (text === undefined) {
    throw new CloudProviderError(
      `Couldn't open infra-kubeconfig: open ${config.kubeconfig}: no such file or directory`,
    );
  }
  const rest: RestConfig = parseKubeconfig(text);
  return { client: environment.dial(rest), namespace: config.namespace || (rest.namespace ?? 'default') };
}
