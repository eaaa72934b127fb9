import type { EventRecorder } from '#server/client';
import { ConnectionError } from '#server/client';
import {
  controllerOf,
  formatTime,
  isNotFound,
  type KubeObject,
  nodes,
  objectKey,
  type Pod,
  pods,
} from '#server/kube';
import { BY_CLUSTER } from './caches.ts';
import { dropFinalizer, find, remove } from './changes.ts';
import type { Context } from './context.ts';
import type { Cluster, Machine } from './core-resources.ts';
import { kubeadmConfigs } from './kubeadm-resources.ts';
import { kubevirtMachines } from './kubevirt-resources.ts';
import {
  CONTROL_PLANE_LABEL,
  EXCLUDE_DETACH_ANNOTATION,
  EXCLUDE_DRAIN_ANNOTATION,
  MACHINE_FINALIZER,
} from './vocabulary.ts';

const PRE_DRAIN_HOOK = 'pre-drain.delete.hook.machine.cluster.x-k8s.io';
const PRE_TERMINATE_HOOK = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io';
/** How soon upstream looks again whether pods have gone, milliseconds. */
const DRAIN_RETRY = 20_000;

/** Where a deletion has got to, and when it must be looked at again without an event. */
export interface DeletionStage {
  reason: string;
  message: string;
  requeueAfter?: number;
}

function hooks(machine: Machine, prefix: string): string[] {
  return Object.keys(machine.metadata.annotations ?? {})
    .filter((key) => key.startsWith(prefix))
    .sort();
}

/** Pods that draining leaves alone: of DaemonSets, static ones, and those that are over. */
function staysOnDrain(pod: Pod): boolean {
  return (
    controllerOf(pod)?.kind === 'DaemonSet' ||
    pod.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined ||
    pod.status?.phase === 'Succeeded' ||
    pod.status?.phase === 'Failed'
  );
}

/**
 * Deletes what a Machine is made of, step by step: drain, wait for volumes, infrastructure, bootstrap configuration, Node, then the
 * finalizer (in place). Models reconcileDelete of machine_controller.go.
 */
export async function deleteMachine(
  context: Context,
  recorder: EventRecorder,
  machine: Machine,
  cluster: Cluster,
): Promise<DeletionStage> {
  const { client, caches, workloads, clock } = context;
  const key = objectKey(cluster);
  const nodeName = machine.status?.nodeRef?.name;
  const deletion = ((machine.status ??= {}).deletion ??= {});
  const since = (
    field:
      | 'nodeDrainStartTime'
      | 'waitForNodeVolumeDetachStartTime'
      | 'waitForPreDrainHookStartTime'
      | 'waitForPreTerminateHookStartTime',
  ): string => (deletion[field] ??= formatTime(clock.now()));
  const infrastructure = caches.kubevirtMachines.get(
    objectKey({
      metadata: { namespace: machine.metadata.namespace ?? '', name: machine.spec.infrastructureRef.name },
    }),
  );
  const expired = (start: string, seconds: number | undefined): boolean =>
    Boolean(seconds) && clock.now() - Date.parse(start) >= (seconds ?? 0) * 1000;

  const mayDeleteNode = (): boolean => {
    if (!nodeName || cluster.metadata.deletionTimestamp !== undefined) return false;
    if (machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined) return true;
    const controlPlane = caches.controlPlanes.get(
      `${cluster.metadata.namespace ?? ''}/${cluster.spec.controlPlaneRef?.name ?? ''}`,
    );
    const others = caches.machines
      .byIndex(BY_CLUSTER, key)
      .filter(
        (other) =>
          other.metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined &&
          other.metadata.deletionTimestamp === undefined,
      );
    return controlPlane?.metadata.deletionTimestamp === undefined && others.length > 0;
  };

  const drain = async (name: string): Promise<DeletionStage | undefined> =>
    workloads.attempt(key, async (workload) => {
      const node = await find(workload, nodes, undefined, name);
      if (!node) return undefined;
      if (!node.spec?.unschedulable)
        await workload.patch(nodes, { name }, { type: 'merge', body: { spec: { unschedulable: true } } });
      const { items } = await workload.list(pods, { fieldSelector: `spec.nodeName=${name}` });
      const leaving = items.filter((pod) => !staysOnDrain(pod));
      for (const pod of leaving.filter((candidate) => candidate.metadata.deletionTimestamp === undefined)) {
        const { namespace = '', name: podName } = pod.metadata;
        const eviction: KubeObject = {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name: podName, namespace },
        };
        try {
          await workload.createSubresource(pods, { namespace, name: podName }, 'eviction', eviction);
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
      }
      if (leaving.length === 0) return undefined;
      const names = leaving.map((pod) => `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`).sort();
      const message = `Drain not completed yet (started at ${since('nodeDrainStartTime')}):\n* Pods ${names.join(', ')}: deletionTimestamp set, but still not removed from the Node`;
      return { reason: 'DrainingNode', message, requeueAfter: DRAIN_RETRY };
    });

  const drained = async (name: string): Promise<DeletionStage | undefined> => {
    const start = since('nodeDrainStartTime');
    const skipped =
      machine.metadata.annotations?.[EXCLUDE_DRAIN_ANNOTATION] !== undefined ||
      deletion.waitForNodeVolumeDetachStartTime !== undefined;
    if (
      skipped ||
      infrastructure?.metadata.deletionTimestamp !== undefined ||
      !infrastructure ||
      expired(start, machine.spec.deletion?.nodeDrainTimeoutSeconds)
    )
      return undefined;
    try {
      const stage = await drain(name);
      if (!stage)
        recorder.event(machine, 'Normal', 'SuccessfulDrainNode', `success draining Machine's node "${name}"`);
      return stage;
    } catch (error) {
      // With no API server there is nobody to drain for: upstream goes on when the cluster cannot be reached.
      if (error instanceof ConnectionError) return undefined;
      recorder.event(
        machine,
        'Warning',
        'FailedDrainNode',
        `error draining Machine's node "${name}": ${error instanceof Error ? error.message : String(error)}`,
      );
      return {
        reason: 'DrainingNode',
        message: 'Error draining Node, please check controller logs for errors',
        requeueAfter: DRAIN_RETRY,
      };
    }
  };

  const detached = async (name: string): Promise<DeletionStage | undefined> => {
    const fresh = deletion.waitForNodeVolumeDetachStartTime === undefined;
    const start = since('waitForNodeVolumeDetachStartTime');
    if (
      machine.metadata.annotations?.[EXCLUDE_DETACH_ANNOTATION] !== undefined ||
      !infrastructure ||
      infrastructure.metadata.deletionTimestamp !== undefined
    )
      return undefined;
    if (expired(start, machine.spec.deletion?.nodeVolumeDetachTimeoutSeconds)) return undefined;
    const node = workloads.caches(key)?.nodes.get(name);
    if (node?.status?.volumesAttached?.length)
      return {
        reason: 'WaitingForVolumeDetach',
        message: `Waiting for Node volumes to be detached (started at ${start})`,
        requeueAfter: DRAIN_RETRY,
      };
    if (fresh)
      recorder.event(
        machine,
        'Normal',
        'NodeVolumesDetached',
        `success waiting for node volumes detaching Machine's node "${name}"`,
      );
    return undefined;
  };

  const deleteNode = async (name: string): Promise<DeletionStage | undefined> => {
    try {
      await workloads.attempt(key, (workload) => workload.delete(nodes, { name }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      recorder.event(
        machine,
        'Warning',
        'FailedDeleteNode',
        `error deleting Machine's Node: ${error instanceof Error ? error.message : String(error)}`,
      );
      const limit = (machine.spec.deletion?.nodeDeletionTimeoutSeconds ?? 10) * 1000;
      if (limit === 0 || clock.now() - Date.parse(machine.metadata.deletionTimestamp ?? '') < limit) {
        return {
          reason: 'DeletingNode',
          message: 'Error deleting Node, please check controller logs for errors',
          requeueAfter: 2000,
        };
      }
    }
    return undefined;
  };

  const nodeToDelete = mayDeleteNode() ? nodeName : undefined;
  if (nodeToDelete) {
    const waiting = hooks(machine, PRE_DRAIN_HOOK);
    if (waiting.length > 0) {
      since('waitForPreDrainHookStartTime');
      return {
        reason: 'WaitingForPreDrainHook',
        message: `Waiting for pre-drain hooks to succeed (hooks: ${waiting.join(',')})`,
      };
    }
    const stage = (await drained(nodeToDelete)) ?? (await detached(nodeToDelete));
    if (stage) return stage;
  }
  const terminating = hooks(machine, PRE_TERMINATE_HOOK);
  if (terminating.length > 0) {
    since('waitForPreTerminateHookStartTime');
    return {
      reason: 'WaitingForPreTerminateHook',
      message: `Waiting for pre-terminate hooks to succeed (hooks: ${terminating.join(',')})`,
    };
  }
  const liveInfrastructure = await find(
    client,
    kubevirtMachines,
    machine.metadata.namespace,
    machine.spec.infrastructureRef.name,
  );
  if (liveInfrastructure) {
    await remove(client, kubevirtMachines, liveInfrastructure);
    return {
      reason: 'WaitingForInfrastructureDeletion',
      message: `Waiting for ${machine.spec.infrastructureRef.kind} to be deleted`,
    };
  }
  const config = machine.spec.bootstrap.configRef;
  const liveConfig = config && (await find(client, kubeadmConfigs, machine.metadata.namespace, config.name));
  if (liveConfig) await remove(client, kubeadmConfigs, liveConfig);
  const stage = nodeToDelete && (await deleteNode(nodeToDelete));
  if (stage) return stage;
  dropFinalizer(machine, MACHINE_FINALIZER);
  return { reason: 'DeletionCompleted', message: 'Deletion completed' };
}
