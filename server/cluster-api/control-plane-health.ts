import type { Node, Pod } from '#server/kube';
import type { Finding } from './conditions.ts';
import type { WorkloadCaches } from './workloads.ts';

/** Static pod of a control plane node → condition of its Machine. */
const COMPONENTS: readonly (readonly [component: string, condition: string])[] = [
  ['kube-apiserver', 'APIServerPodHealthy'],
  ['kube-controller-manager', 'ControllerManagerPodHealthy'],
  ['kube-scheduler', 'SchedulerPodHealthy'],
  ['etcd', 'EtcdPodHealthy'],
];

/** What a control plane Machine's Ready condition waits for beside the usual. */
export const CONTROL_PLANE_GATES = [
  'NodeKubeadmLabelsAndTaintsSet',
  'APIServerPodHealthy',
  'ControllerManagerPodHealthy',
  'SchedulerPodHealthy',
  'EtcdPodHealthy',
  'EtcdMemberHealthy',
];

function podFinding(type: string, component: string, pod: Pod | undefined): Finding {
  if (!pod) return { type, status: 'False', reason: 'DoesNotExist', message: 'Pod does not exist' };
  if (pod.metadata.deletionTimestamp !== undefined)
    return { type, status: 'False', reason: 'Deleting', message: `Please check logs of Pod ${component}` };
  const ready = pod.status?.conditions?.find((condition) => condition.type === 'Ready');
  switch (pod.status?.phase) {
    case 'Running': {
      if (ready?.status === 'True') return { type, status: 'True', reason: 'Running' };
      const waiting = pod.status.containerStatuses?.find((container) => container.state?.waiting)?.state
        ?.waiting;
      return {
        type,
        status: 'False',
        reason: 'Provisioning',
        message: waiting?.reason ? `Waiting: ${waiting.reason}` : 'Waiting to report readiness',
      };
    }
    case 'Succeeded':
      return { type, status: 'False', reason: 'Failed', message: 'All the containers have been terminated' };
    case 'Failed':
      return { type, status: 'False', reason: 'Failed', message: 'All the containers have been terminated' };
    default:
      return { type, status: 'False', reason: 'Provisioning', message: 'Waiting to be scheduled' };
  }
}

/**
 * The conditions of a control plane Machine that tell of its static pods, and whether kubeadm has labelled the node.
 * Models controlplane/kubeadm/pkg/workload_cluster_conditions.go; the etcd member is judged by its pod.
 */
export function controlPlaneFindings(
  node: Node | undefined,
  workload: WorkloadCaches | undefined,
  waiting: string,
): Finding[] {
  if (!node || !workload)
    return CONTROL_PLANE_GATES.map((type) => ({
      type,
      status: 'Unknown',
      reason: 'InspectionFailed',
      message: waiting,
    }));
  const pods = COMPONENTS.map(([component, condition]) =>
    podFinding(
      condition,
      component,
      workload.controlPlanePods.get(`kube-system/${component}-${node.metadata.name}`),
    ),
  );
  const etcd = pods.find((finding) => finding.type === 'EtcdPodHealthy');
  const member: Finding =
    etcd?.status === 'True'
      ? { type: 'EtcdMemberHealthy', status: 'True', reason: 'Healthy' }
      : {
          type: 'EtcdMemberHealthy',
          status: 'False',
          reason: 'NotHealthy',
          message: 'Etcd Pod is not healthy',
        };
  const labelled = node.metadata.labels?.['node-role.kubernetes.io/control-plane'] !== undefined;
  const set: Finding = labelled
    ? { type: 'NodeKubeadmLabelsAndTaintsSet', status: 'True', reason: 'Set' }
    : {
        type: 'NodeKubeadmLabelsAndTaintsSet',
        status: 'False',
        reason: 'NotSet',
        message: 'Node is missing the node-role.kubernetes.io/control-plane label',
      };
  return [set, ...pods, member];
}
