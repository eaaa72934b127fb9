import { Gauge, Histogram, Registry } from 'prom-client';

/** What one cloud-controller-manager measures of itself; upstream's names. */
export interface CloudMetrics {
  /** Seconds from a node's creation until its taint was removed. */
  taintRemoved(seconds: number): void;
  /** Seconds from a node's creation until it was initialised. */
  initialNodeSync(seconds: number): void;
  leading(lease: string, leads: boolean): void;
  /** In the text format of Prometheus. */
  text(): Promise<string>;
}

/** Seconds: 1, 4, 16 … about 17 minutes. */
const BUCKETS = [1, 4, 16, 64, 256, 1024];

/** Models k8s.io/cloud-provider/controllers/node/metrics.go and client-go's leader election metric. */
export function createCloudMetrics(): CloudMetrics {
  const registry = new Registry();
  const registers = [registry];
  const taintRemoval = new Histogram({
    name: 'node_controller_cloud_provider_taint_removal_delay_seconds',
    help: 'Seconds from the creation of a node until its cloud-provider taint was removed.',
    buckets: BUCKETS,
    registers,
  });
  const initialSync = new Histogram({
    name: 'node_controller_initial_node_sync_delay_seconds',
    help: 'Seconds from the creation of a node until its first synchronization was complete.',
    buckets: BUCKETS,
    registers,
  });
  const master = new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process holds the lease (1) or stands by (0).',
    labelNames: ['name'],
    registers,
  });
  return {
    taintRemoved: (seconds) => taintRemoval.observe(seconds),
    initialNodeSync: (seconds) => initialSync.observe(seconds),
    leading: (lease, leads) => master.set({ name: lease }, leads ? 1 : 0),
    text: () => registry.metrics(),
  };
}
