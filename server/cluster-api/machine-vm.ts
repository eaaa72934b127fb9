import type { VirtualMachine, VirtualMachineSpec } from '#server/clouds/kubevirt';
import { cloneJson } from '#server/kube';
import type { Cluster, Machine } from './core-resources.ts';
import type { KubevirtMachine } from './kubevirt-resources.ts';
import {
  CLUSTER_NAME_LABEL,
  CONTROL_PLANE_LABEL,
  KUBEVIRT_MACHINE_NAME_LABEL,
  KUBEVIRT_MACHINE_NAMESPACE_LABEL,
  ROLE_LABEL,
} from './vocabulary.ts';

const CLOUD_INIT_VOLUME = 'cloudinitvolume';

/** Where the VM of a machine lives: the template's namespace, or the machine's own. */
export function vmNamespace(object: KubevirtMachine): string {
  return object.spec.virtualMachineTemplate.metadata?.namespace || (object.metadata.namespace ?? '');
}

/** Name of the Secret with the user data that KubeVirt reads. */
export function userDataName(dataSecretName: string): string {
  return `${dataSecretName}-userdata`;
}

/** Data volumes are of one machine each: their names get its name in front, wherever they are used. */
function ownDataVolumes(spec: VirtualMachineSpec, prefix: string): void {
  const names = new Map<string, string>();
  for (const template of spec.dataVolumeTemplates ?? []) {
    const old = template.metadata.name ?? '';
    names.set(old, `${prefix}-${old}`);
    template.metadata.name = `${prefix}-${old}`;
  }
  for (const volume of spec.template.spec.volumes ?? []) {
    const claim = volume.persistentVolumeClaim;
    if (claim) claim.claimName = names.get(claim.claimName) ?? claim.claimName;
    if (volume.dataVolume)
      volume.dataVolume.name = names.get(volume.dataVolume.name) ?? volume.dataVolume.name;
  }
}

/**
 * The VirtualMachine of a KubevirtMachine: its template, the labels by which the cloud-controller-manager and `<cluster>-lb` find it, and a
 * disk with the user data. Models pkg/kubevirt (utils.go, machine.go) of cluster-api-provider-kubevirt.
 */
export function machineVm(
  object: KubevirtMachine,
  machine: Machine,
  cluster: Cluster,
  dataSecretName: string,
): VirtualMachine {
  const { metadata: template, spec: templateSpec } = object.spec.virtualMachineTemplate;
  const name = object.metadata.name;
  const spec = cloneJson(templateSpec);
  const labels = {
    'kubevirt.io/vm': name,
    name,
    [ROLE_LABEL]: machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined ? 'worker' : 'control-plane',
    [CLUSTER_NAME_LABEL]: cluster.metadata.name,
    [KUBEVIRT_MACHINE_NAME_LABEL]: name,
    [KUBEVIRT_MACHINE_NAMESPACE_LABEL]: object.metadata.namespace ?? '',
  };
  spec.template.metadata = {
    labels: { ...spec.template.metadata?.labels, ...labels },
    annotations: { ...spec.template.metadata?.annotations },
  };
  const inner = spec.template.spec;
  inner.volumes = [
    ...(inner.volumes ?? []),
    { name: CLOUD_INIT_VOLUME, cloudInitConfigDrive: { secretRef: { name: userDataName(dataSecretName) } } },
  ];
  inner.domain.devices.disks = [
    ...(inner.domain.devices.disks ?? []),
    { name: CLOUD_INIT_VOLUME, disk: { bus: 'virtio' } },
  ];
  ownDataVolumes(spec, name);
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      name,
      namespace: vmNamespace(object),
      labels: { ...template?.labels, ...labels },
      ...(template?.annotations ? { annotations: template.annotations } : {}),
    },
    spec,
  };
}
