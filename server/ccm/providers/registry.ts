import { errorMessage } from '#server/base';
import { type CloudProvider, CloudProviderError } from '../contract.ts';
import type { ProviderEnvironment } from './environment.ts';
import { createKubevirtProvider } from './kubevirt/provider.ts';

type ProviderFactory = (environment: ProviderEnvironment) => CloudProvider;

/** The providers by the name `--cloud-provider` takes. A new one is a folder and a row. */
const PROVIDERS: Readonly<Record<string, ProviderFactory>> = {
  kubevirt: createKubevirtProvider,
};

/**
 * Makes the named provider; undefined for `external`, which is none. Throws CloudProviderError for a name nobody knows
 * and when the provider cannot be made. Models k8s.io/cloud-provider/plugins.go (InitCloudProvider).
 */
export function initCloudProvider(name: string, environment: ProviderEnvironment): CloudProvider | undefined {
  if (name === 'external') {
    environment.log.info('plugins.go:108', 'External cloud provider specified');
    return undefined;
  }
  const create = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (!create) throw new CloudProviderError(`unknown cloud provider "${name}"`);
  try {
    return create(environment);
  } catch (error) {
    throw new CloudProviderError(`could not init cloud provider "${name}": ${errorMessage(error)}`);
  }
}
