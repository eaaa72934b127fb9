import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createManualClock } from '#server/base';
import { createMemoryFileSystem } from '#server/node';
import { KubeadmConfigError, mergeFlags, parseKubeadmConfig } from './config.ts';
import { controlPlaneManifests } from './manifests.ts';
import {
  addressOf,
  KUBEADM_FLAGS_FILE,
  readKubeletFlags,
  readTextFile,
  writeKubeletFiles,
} from './node-files.ts';

const CONFIG = `---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: tenant-x
kubernetesVersion: v1.36.3
controllerManager:
  extraArgs:
  - name: cloud-provider
    value: external
  - name: leader-elect
    value: "false"
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  kubeletExtraArgs:
  - name: cloud-provider
    value: external
  taints: []
skipPhases:
- addon/kube-proxy
`;

describe('kubeadm configuration', () => {
  it('reads what Cluster API writes, with kubeadm’s defaults', () => {
    const { cluster, init, join } = parseKubeadmConfig(CONFIG);
    expect(join).toBeUndefined();
    expect(cluster).toMatchObject({
      clusterName: 'tenant-x',
      networking: { podSubnet: '10.244.0.0/16', serviceSubnet: '10.96.0.0/12', dnsDomain: 'cluster.local' },
    });
    expect(init).toMatchObject({
      nodeRegistration: { kubeletExtraArgs: [{ name: 'cloud-provider', value: 'external' }], taints: [] },
      localAPIEndpoint: { bindPort: 6443 },
      skipPhases: ['addon/kube-proxy'],
    });
  });

  it.each([
    [
      'a version it does not know',
      'apiVersion: kubeadm.k8s.io/v1beta2\nkind: InitConfiguration\n',
      /kubeadm\.k8s\.io\/v1beta2/,
    ],
    [
      'a flag without a name',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer: {extraArgs: [{value: a}]}\n',
      /apiServer\.extraArgs\[0\]\.name/,
    ],
    [
      'a join without a token',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery: {bootstrapToken: {apiServerEndpoint: "a:1"}}\n',
      /discovery\.bootstrapToken\.token/,
    ],
  ])('refuses %s', (_what, text, message) => {
    expect(() => parseKubeadmConfig(text)).toThrow(KubeadmConfigError);
    expect(() => parseKubeadmConfig(text)).toThrow(message);
  });

  it('lets extra arguments replace defaults, sorted', () => {
    expect(
      mergeFlags({ b: '1', a: '2' }, [
        { name: 'b', value: '3' },
        { name: 'c', value: '' },
      ]),
    ).toEqual(['--a=2', '--b=3', '--c=']);
  });

  it('counts addresses in a range', () => {
    expect([
      addressOf('10.96.0.0/12', 1),
      addressOf('10.96.0.0/12', 10),
      addressOf('10.0.0.250/24', 10),
    ]).toEqual(['10.96.0.1', '10.96.0.10', '10.0.1.4']);
  });
});

describe('what kubeadm leaves on the machine', () => {
  it('are four static pods with the flags of the configuration', () => {
    const { cluster } = parseKubeadmConfig(CONFIG);
    const manifests = controlPlaneManifests(cluster!, { name: 'node-1', ip: '10.0.1.11', bindPort: 6443 });
    expect(Object.keys(manifests).sort()).toEqual([
      'etcd.yaml',
      'kube-apiserver.yaml',
      'kube-controller-manager.yaml',
      'kube-scheduler.yaml',
    ]);
    const pod = parse(manifests['kube-controller-manager.yaml'] ?? '', { maxAliasCount: 0 }) as {
      metadata: object;
      spec: {
        hostNetwork: boolean;
        priorityClassName: string;
        containers: { image: string; command: string[] }[];
      };
    };
    expect(pod.metadata).toEqual({
      labels: { component: 'kube-controller-manager', tier: 'control-plane' },
      name: 'kube-controller-manager',
      namespace: 'kube-system',
    });
    expect(pod.spec).toMatchObject({ hostNetwork: true, priorityClassName: 'system-node-critical' });
    const [container] = pod.spec.containers;
    expect(container?.image).toBe('registry.k8s.io/kube-controller-manager:v1.36.3');
    expect(container?.command).toContain('--cloud-provider=external');
    expect(container?.command).toContain('--leader-elect=false');
    expect(container?.command).not.toContain('--leader-elect=true');
  });

  it('is a file with the kubelet’s flags, and a configuration that does not know them', () => {
    const files = createMemoryFileSystem({}, { clock: createManualClock() });
    const { init } = parseKubeadmConfig(CONFIG);
    writeKubeletFiles(files, {
      registration: init!.nodeRegistration,
      clusterDns: '10.96.0.10',
      dnsDomain: 'cluster.local',
    });
    expect(readTextFile(files, KUBEADM_FLAGS_FILE)).toBe(
      'KUBELET_KUBEADM_ARGS="--cloud-provider=external"\n',
    );
    expect(readKubeletFlags(files)).toEqual(['--cloud-provider=external']);
    const config = readTextFile(files, '/var/lib/kubelet/config.yaml') ?? '';
    expect(parse(config)).toMatchObject({
      kind: 'KubeletConfiguration',
      clusterDNS: ['10.96.0.10'],
      staticPodPath: '/etc/kubernetes/manifests',
    });
    expect(config).not.toMatch(/cloud/);
  });
});
