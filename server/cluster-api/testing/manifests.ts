import type { Cluster, MachineDeployment } from '../core-resources.ts';
import type { KubeadmConfigTemplate, KubeadmControlPlane } from '../kubeadm-resources.ts';
import type { KubevirtCluster, KubevirtMachineTemplate } from '../kubevirt-resources.ts';

export const NAMESPACE = 'handson-alice';
export const CLUSTER = 'tenant-9f3c';

const metadata = (name: string): { name: string; namespace: string } => ({ name, namespace: NAMESPACE });
const infrastructureRef = (kind: string, name: string) => ({
  apiGroup: 'infrastructure.cluster.x-k8s.io',
  kind,
  name,
});
const external = { kubeletExtraArgs: [{ name: 'cloud-provider', value: 'external' }] };

export const cluster: Cluster = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: metadata(CLUSTER),
  spec: {
    clusterNetwork: { pods: { cidrBlocks: ['10.244.0.0/16'] }, services: { cidrBlocks: ['10.96.0.0/16'] } },
    infrastructureRef: infrastructureRef('KubevirtCluster', CLUSTER),
    controlPlaneRef: {
      apiGroup: 'controlplane.cluster.x-k8s.io',
      kind: 'KubeadmControlPlane',
      name: `${CLUSTER}-control-plane`,
    },
  },
};

export const kubevirtCluster: KubevirtCluster = {
  apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha1',
  kind: 'KubevirtCluster',
  metadata: metadata(CLUSTER),
  spec: { controlPlaneServiceTemplate: { spec: { type: 'ClusterIP' } } },
};

export function machineTemplate(name: string): KubevirtMachineTemplate {
  return {
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha1',
    kind: 'KubevirtMachineTemplate',
    metadata: metadata(name),
    spec: {
      template: {
        spec: {
          virtualMachineBootstrapCheck: { checkStrategy: 'ssh' },
          virtualMachineTemplate: {
            metadata: { namespace: NAMESPACE },
            spec: {
              runStrategy: 'Always',
              template: {
                spec: {
                  domain: {
                    cpu: { cores: 2 },
                    memory: { guest: '4Gi' },
                    devices: { disks: [{ name: 'containervolume', disk: { bus: 'virtio' } }] },
                  },
                  evictionStrategy: 'External',
                  volumes: [
                    {
                      name: 'containervolume',
                      containerDisk: { image: 'quay.io/capk/ubuntu-2404-container-disk:v1.36.3' },
                    },
                  ],
                },
              },
            },
          },
        },
      },
    },
  };
}

export const controlPlane: KubeadmControlPlane = {
  apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
  kind: 'KubeadmControlPlane',
  metadata: metadata(`${CLUSTER}-control-plane`),
  spec: {
    replicas: 1,
    version: 'v1.36.3',
    machineTemplate: {
      spec: { infrastructureRef: infrastructureRef('KubevirtMachineTemplate', `${CLUSTER}-control-plane`) },
    },
    kubeadmConfigSpec: {
      clusterConfiguration: {
        controllerManager: { extraArgs: [{ name: 'cloud-provider', value: 'external' }] },
      },
      initConfiguration: { nodeRegistration: { ...external, taints: [] } },
      joinConfiguration: { nodeRegistration: { ...external, taints: [] } },
      files: [
        {
          path: '/etc/kubernetes/addons/cilium.yaml',
          owner: 'root:root',
          permissions: '0644',
          content: 'kind: List\n',
        },
      ],
      postKubeadmCommands: [
        'kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f /etc/kubernetes/addons/cilium.yaml',
      ],
    },
  },
};

export const configTemplate: KubeadmConfigTemplate = {
  apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
  kind: 'KubeadmConfigTemplate',
  metadata: metadata(`${CLUSTER}-md-0`),
  spec: { template: { spec: { joinConfiguration: { nodeRegistration: external } } } },
};

export function deployment(replicas: number): MachineDeployment {
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    metadata: metadata(`${CLUSTER}-md-0`),
    spec: {
      clusterName: CLUSTER,
      replicas,
      selector: {},
      template: {
        spec: {
          clusterName: CLUSTER,
          version: 'v1.36.3',
          bootstrap: {
            configRef: {
              apiGroup: 'bootstrap.cluster.x-k8s.io',
              kind: 'KubeadmConfigTemplate',
              name: `${CLUSTER}-md-0`,
            },
          },
          infrastructureRef: infrastructureRef('KubevirtMachineTemplate', `${CLUSTER}-md-0`),
        },
      },
    },
  };
}
