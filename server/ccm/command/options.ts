import { type ParsedFlags, parseBool, parseDuration } from './flag-set.ts';
import { FLAGS } from './flags.ts';

/** What the command line says. Durations in milliseconds. */
export interface CommandOptions {
  cloudProvider: string;
  cloudConfig: string;
  kubeconfig: string;
  master: string;
  /** `*`, names, and names with a minus. */
  controllers: readonly string[];
  clusterName: string;
  clusterCIDR: string;
  configureCloudRoutes: boolean;
  allowUntaggedCloud: boolean;
  nodeMonitorPeriod: number;
  nodeStatusUpdateFrequency: number;
  routeReconciliationPeriod: number;
  controllerStartInterval: number;
  concurrentNodeSyncs: number;
  concurrentNodeStatusUpdates: number;
  concurrentServiceSyncs: number;
  securePort: number;
  verbosity: number;
  leaderElection: {
    leaderElect: boolean;
    leaseDuration: number;
    renewDeadline: number;
    retryPeriod: number;
    resourceLock: string;
    resourceName: string;
    resourceNamespace: string;
  };
}

const FALLBACKS = new Map(FLAGS.map(({ name, fallback }) => [name, fallback]));

/** Reads the options out of a command line that parsed. */
export function optionsFrom(flags: ParsedFlags): CommandOptions {
  const text = (name: string): string => flags.given(name).at(-1) ?? FALLBACKS.get(name) ?? '';
  const bool = (name: string): boolean => parseBool(text(name)) ?? false;
  const number = (name: string): number => Number(text(name));
  const duration = (name: string): number => parseDuration(text(name)) ?? 0;
  const controllers = flags.given('controllers').flatMap((list) => list.split(','));
  const concurrentNodeSyncs = number('concurrent-node-syncs');
  const statusUpdates = number('concurrent-node-status-updates');
  return {
    cloudProvider: text('cloud-provider'),
    cloudConfig: text('cloud-config'),
    kubeconfig: text('kubeconfig'),
    master: text('master'),
    controllers: flags.given('controllers').length > 0 ? controllers : ['*'],
    clusterName: text('cluster-name'),
    clusterCIDR: text('cluster-cidr'),
    configureCloudRoutes: bool('configure-cloud-routes'),
    allowUntaggedCloud: bool('allow-untagged-cloud'),
    nodeMonitorPeriod: duration('node-monitor-period'),
    nodeStatusUpdateFrequency: duration('node-status-update-frequency'),
    routeReconciliationPeriod: duration('route-reconciliation-period'),
    controllerStartInterval: duration('controller-start-interval'),
    concurrentNodeSyncs,
    concurrentNodeStatusUpdates: statusUpdates > 0 ? statusUpdates : concurrentNodeSyncs,
    concurrentServiceSyncs: number('concurrent-service-syncs'),
    securePort: number('secure-port'),
    verbosity: number('v'),
    leaderElection: {
      leaderElect: bool('leader-elect'),
      leaseDuration: duration('leader-elect-lease-duration'),
      renewDeadline: duration('leader-elect-renew-deadline'),
      retryPeriod: duration('leader-elect-retry-period'),
      resourceLock: text('leader-elect-resource-lock'),
      resourceName: text('leader-elect-resource-name'),
      resourceNamespace: text('leader-elect-resource-namespace'),
    },
  };
}

/**
 * What is wrong with the options, as one line, or undefined. Models Validate of k8s.io/cloud-provider/options and
 * k8s.io/controller-manager/options.
 */
export function validationError(options: CommandOptions, known: readonly string[]): string | undefined {
  const errors: string[] = [];
  const { leaderElect, resourceLock } = options.leaderElection;
  if (leaderElect && resourceLock !== 'leases') errors.push('resourceLock value must be "leases"');
  for (const entry of options.controllers) {
    const name = entry.replace(/^-/, '');
    if (entry !== '*' && !known.includes(name)) {
      errors.push(`${JSON.stringify(name)} is not in the list of known controllers`);
    }
  }
  const port = options.securePort;
  if (port < 0 || port > 65_535) {
    errors.push(
      `--secure-port ${port} must be between 0 and 65535, inclusive. 0 for turning off secure port`,
    );
  }
  if (options.cloudProvider === '') errors.push('--cloud-provider cannot be empty');
  const distinct = [...new Set(errors)];
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : distinct[0];
}

/** Models k8s.io/controller-manager/app.IsControllerEnabled: the first mention of a name counts, before any `*`. */
export function isControllerEnabled(name: string, controllers: readonly string[]): boolean {
  for (const entry of controllers) {
    if (entry === name) return true;
    if (entry === `-${name}`) return false;
  }
  return controllers.includes('*');
}
