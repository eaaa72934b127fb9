import { createHash } from 'node:crypto';
import { controllerReference, generateName, type Pod, quantityToNumber } from '#server/kube';
import { CREATED_BY_LABEL, LAUNCHER_LABEL, type VirtualMachineInstance } from './resources.ts';

export const LAUNCHER_IMAGE = 'quay.io/kubevirt/virt-launcher:v1.7.0';

/** Seconds a guest gets to shut down when its VMI says nothing. */
export const DEFAULT_GRACE_SECONDS = 30;

/** What virt-launcher waits beyond the guest's grace, and the kubelet beyond that. */
const GRACE_PADDING_SECONDS = 15;

const NAME_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const MEBI = 1024 * 1024;

/**
 * The pod's name: a random-looking suffix that is a function of the VMI's UID, so that a second attempt to create the
 * pod of one VMI meets the first.
 */
export function launcherName(vmi: VirtualMachineInstance): string {
  const digest = createHash('sha256')
    .update(vmi.metadata.uid ?? '')
    .digest();
  const suffix = Array.from(digest.subarray(0, 5), (byte) => NAME_ALPHABET[byte % NAME_ALPHABET.length]).join(
    '',
  );
  return generateName(`virt-launcher-${vmi.metadata.name}-`, suffix);
}

/** Virtual CPUs of the domain. */
export function cpusOf(vmi: VirtualMachineInstance): number {
  const { cpu } = vmi.spec.domain;
  return (cpu?.cores ?? 1) * (cpu?.sockets ?? 1) * (cpu?.threads ?? 1);
}

/** Guest memory in bytes. */
export function memoryOf(vmi: VirtualMachineInstance): number {
  const { memory, resources } = vmi.spec.domain;
  return quantityToNumber(memory?.guest ?? resources?.requests?.['memory'] ?? '1Gi');
}

/** What the hypervisor needs beside the guest: page tables, libvirt, launcher, one slice per CPU, video. */
function overheadOf(vmi: VirtualMachineInstance): number {
  return Math.ceil(memoryOf(vmi) / 512) + (220 + 8 + 32 + 8 * cpusOf(vmi)) * MEBI;
}

function launcherContainer(
  vmi: VirtualMachineInstance,
  graceSeconds: number,
): NonNullable<Pod['spec']>['containers'][number] {
  const memory = `${Math.ceil((memoryOf(vmi) + overheadOf(vmi)) / MEBI)}Mi`;
  return {
    name: 'compute',
    image: LAUNCHER_IMAGE,
    imagePullPolicy: 'IfNotPresent',
    command: [
      '/usr/bin/virt-launcher-monitor',
      '--qemu-timeout',
      '272s',
      '--name',
      vmi.metadata.name,
      '--uid',
      vmi.metadata.uid ?? '',
      '--namespace',
      vmi.metadata.namespace ?? '',
      '--kubevirt-share-dir',
      '/var/run/kubevirt',
      '--ephemeral-disk-dir',
      '/var/run/kubevirt-ephemeral-disks',
      '--container-disk-dir',
      '/var/run/kubevirt/container-disks',
      '--grace-period-seconds',
      String(graceSeconds),
      '--hook-sidecars',
      '0',
      '--ovmf-path',
      '/usr/share/OVMF',
      '--run-as-nonroot',
    ],
    env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } }],
    // A tenth of a CPU for each virtual one: KubeVirt's cpuAllocationRatio of 10.
    resources: { requests: { cpu: `${cpusOf(vmi) * 100}m`, memory }, limits: {} },
  };
}

/**
 * The virt-launcher pod of a VMI, ready to be created. Models kubevirt pkg/virt-controller/services/template.go,
 * without device plugins, volumes of its own and readiness gates.
 */
export function launcherPod(vmi: VirtualMachineInstance): Pod {
  const { spec, metadata } = vmi;
  const graceSeconds = (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) + GRACE_PADDING_SECONDS;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: launcherName(vmi),
      ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
      labels: {
        ...metadata.labels,
        [LAUNCHER_LABEL]: 'virt-launcher',
        [CREATED_BY_LABEL]: metadata.uid ?? '',
        'vm.kubevirt.io/name': metadata.name,
        'vmi.kubevirt.io/id': metadata.name.slice(0, 63),
      },
      annotations: {
        'kubevirt.io/domain': metadata.name,
        'kubectl.kubernetes.io/default-container': 'compute',
        'kubevirt.io/migrationTransportUnix': 'true',
        'descheduler.alpha.kubernetes.io/request-evict-only': '',
      },
      ownerReferences: [controllerReference(vmi)],
    },
    spec: {
      restartPolicy: 'Never',
      hostname: spec.hostname ?? metadata.name,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: graceSeconds + GRACE_PADDING_SECONDS,
      nodeSelector: { ...spec.nodeSelector, 'kubevirt.io/schedulable': 'true' },
      ...(spec.tolerations ? { tolerations: spec.tolerations } : {}),
      ...(spec.affinity ? { affinity: spec.affinity } : {}),
      ...(spec.priorityClassName ? { priorityClassName: spec.priorityClassName } : {}),
      ...(spec.schedulerName ? { schedulerName: spec.schedulerName } : {}),
      securityContext: { fsGroup: 107, runAsGroup: 107, runAsNonRoot: true, runAsUser: 107 },
      containers: [launcherContainer(vmi, graceSeconds)],
    },
  };
}
