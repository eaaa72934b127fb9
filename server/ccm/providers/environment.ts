import type { Client, RestConfig } from '#server/client';
import type { Klog } from '../klog.ts';

/** What a provider may use of the process it runs in. */
export interface ProviderEnvironment {
  /** The text of the `--cloud-config` file; undefined when none was given. */
  readonly config: string | undefined;
  /** A file of the container; undefined when there is none. */
  readFile(path: string): string | undefined;
  dial(config: RestConfig): Client;
  /** A client of the cluster the process runs in; throws OperationalError outside one. */
  inCluster(): Client;
  readonly log: Klog;
}
