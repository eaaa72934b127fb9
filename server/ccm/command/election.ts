import { type Clock, errorMessage, type Ids } from '#server/base';
import { type Client, type EventRecorder, type LeaderElection, runLeaderElection } from '#server/client';
import { isNotFound } from '#server/kube';
import { type Klog, klogLogger } from '../klog.ts';
import type { CommandOptions } from './options.ts';

export interface ElectionOptions {
  client: Client;
  clock: Clock;
  ids: Ids;
  log: Klog;
  recorder: EventRecorder;
  /** `<hostname>_<uuid>`. */
  identity: string;
  settings: CommandOptions['leaderElection'];
  onStarted(signal: AbortSignal): Promise<void>;
  /** The lease was lost, or the election stopped. */
  onStopped(): void;
}

/**
 * Stands for the lease of the cluster that is served, saying in the log what client-go says. Bad durations throw
 * InternalError. Models leaderElectAndRun of k8s.io/cloud-provider/app.
 */
export function standForElection(options: ElectionOptions): LeaderElection {
  const { settings, log } = options;
  const lease = { namespace: settings.resourceNamespace, name: settings.resourceName };
  const shown = `${lease.namespace}/${lease.name}`;
  log.info('leaderelection.go:257', `attempting to acquire leader lease ${shown}...`);
  return runLeaderElection({
    client: tellingClient(options.client, shown, log),
    clock: options.clock,
    ids: options.ids,
    log: klogLogger(log, 'leaderelection.go:266'),
    recorder: options.recorder,
    lease,
    identity: options.identity,
    leaseDuration: settings.leaseDuration,
    renewDeadline: settings.renewDeadline,
    retryPeriod: settings.retryPeriod,
    async onStarted(signal) {
      log.info('leaderelection.go:271', `successfully acquired lease ${shown}`);
      await options.onStarted(signal);
    },
    onStopped: () => options.onStopped(),
  });
}

/** The client of the lock: what goes wrong with the Lease is told, because it keeps everything else from starting. */
function tellingClient(client: Client, lease: string, log: Klog): Client {
  const telling = async <T>(answer: Promise<T>, source: string, text: string): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      if (!isNotFound(error) || source !== READ) log.error(source, `${text}: ${errorMessage(error)}`);
      throw error;
    }
  };
  return {
    ...client,
    get: (...call) => telling(client.get(...call), READ, `error retrieving resource lock ${lease}`),
    create: (...call) =>
      telling(
        client.create(...call),
        'leaderelection.go:452',
        'error initially creating leader election record',
      ),
    update: (...call) => telling(client.update(...call), 'leaderelection.go:484', 'Failed to update lock'),
  };
}

const READ = 'leaderelection.go:448';
