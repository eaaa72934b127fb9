import { stringify } from 'yaml';
import type { Cluster, Machine } from './core-resources.ts';
import type {
  ClusterConfiguration,
  InitConfiguration,
  JoinConfiguration,
  NodeRegistration,
} from './kubeadm-resources.ts';
import { UNINITIALIZED_TAINT } from './vocabulary.ts';

const API_VERSION = 'kubeadm.k8s.io/v1beta4';

function document(kind: string, fields: object): string {
  return stringify(
    { apiVersion: API_VERSION, kind, ...fields },
    { lineWidth: 0, sortMapEntries: true, aliasDuplicateObjects: false },
  );
}

/** kubeadm's timeouts are durations, Cluster API's are seconds under longer names. */
function timeouts(config: { timeouts?: object }): object {
  const entries = Object.entries(config.timeouts ?? {}).map(([name, seconds]) => [
    name.replace(/Seconds$/, ''),
    `${String(seconds)}s`,
  ]);
  return entries.length > 0 ? { timeouts: Object.fromEntries(entries) as object } : {};
}

/**
 * kubeadm's ClusterConfiguration (v1beta4) as YAML: what the control plane asks for, and what only the Cluster and the
 * Machine know (endpoint, networks, version). Models bootstrap/kubeadm/types/upstreamv1beta4.
 */
export function clusterConfigurationYaml(
  config: ClusterConfiguration | undefined,
  cluster: Cluster,
  machine: Machine,
): string {
  const { certificateValidityPeriodDays, caCertificateValidityPeriodDays, ...rest } = config ?? {};
  const { host = '', port = 6443 } = cluster.spec.controlPlaneEndpoint ?? {};
  const network = cluster.spec.clusterNetwork;
  const networking = {
    ...(network?.serviceDomain ? { dnsDomain: network.serviceDomain } : {}),
    ...(network?.pods ? { podSubnet: network.pods.cidrBlocks.join(',') } : {}),
    ...(network?.services ? { serviceSubnet: network.services.cidrBlocks.join(',') } : {}),
  };
  return document('ClusterConfiguration', {
    apiServer: {},
    controllerManager: {},
    scheduler: {},
    dns: {},
    etcd: {},
    ...rest,
    clusterName: cluster.metadata.name,
    controlPlaneEndpoint: rest.controlPlaneEndpoint ?? `${host}:${port}`,
    kubernetesVersion: machine.spec.version ?? '',
    networking,
    ...(certificateValidityPeriodDays
      ? { certificateValidityPeriod: `${certificateValidityPeriodDays * 24}h0m0s` }
      : {}),
    ...(caCertificateValidityPeriodDays
      ? { caCertificateValidityPeriod: `${caCertificateValidityPeriodDays * 24}h0m0s` }
      : {}),
  });
}

/** kubeadm's InitConfiguration (v1beta4) as YAML. */
export function initConfigurationYaml(config: InitConfiguration | undefined): string {
  const { timeouts: _, ...rest } = config ?? {};
  return document('InitConfiguration', {
    localAPIEndpoint: {},
    nodeRegistration: {},
    ...rest,
    ...timeouts(config ?? {}),
  });
}

/** What a worker registers with: its own taints and the one that goes when Cluster API has seen the Node. */
function workerRegistration(registration: NodeRegistration | undefined): NodeRegistration {
  const taints = registration?.taints ?? [];
  const marked = taints.some((taint) => taint.key === UNINITIALIZED_TAINT.key);
  return { ...registration, taints: marked ? taints : [...taints, UNINITIALIZED_TAINT] };
}

/** kubeadm's JoinConfiguration (v1beta4) as YAML; `controlPlane` joins do not get the worker's taint. */
export function joinConfigurationYaml(config: JoinConfiguration, controlPlane: boolean): string {
  const { timeouts: _, controlPlane: asked, nodeRegistration, ...rest } = config;
  return document('JoinConfiguration', {
    ...rest,
    nodeRegistration: controlPlane ? (nodeRegistration ?? {}) : workerRegistration(nodeRegistration),
    ...(controlPlane ? { controlPlane: asked ?? {} } : {}),
    ...timeouts(config),
  });
}
