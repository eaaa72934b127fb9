/** The guest operating system of the lab's machines: what `kubectl get nodes -o wide` and the files of a node tell. */
export const OS_IMAGE = 'Ubuntu 26.04.1 LTS';
export const KERNEL = '7.0.0-14-generic';
export const CONTAINER_RUNTIME = 'containerd://2.2.1';
export const ARCHITECTURE = 'arm64';

/** What the guest agent reports to KubeVirt. */
export const GUEST = { osName: 'Ubuntu', osVersion: '26.04', kernel: KERNEL } as const;

/** Files of a fresh disk, by path. */
export const IMAGE_FILES: Readonly<Record<string, string>> = {
  '/etc/os-release': [
    `PRETTY_NAME="${OS_IMAGE}"`,
    'NAME="Ubuntu"',
    'VERSION_ID="26.04"',
    'VERSION="26.04.1 LTS (Resolute Raccoon)"',
    'VERSION_CODENAME=resolute',
    'ID=ubuntu',
    'ID_LIKE=debian',
    'HOME_URL="https://www.ubuntu.com/"',
    'UBUNTU_CODENAME=resolute',
    '',
  ].join('\n'),
  '/etc/containerd/config.toml':
    'version = 3\n\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]\n  SystemdCgroup = true\n',
  '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf': [
    '[Service]',
    'Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"',
    'Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"',
    'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env',
    'EnvironmentFile=-/etc/default/kubelet',
    'ExecStart=',
    'ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS',
    '',
  ].join('\n'),
  '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=\n',
  '/etc/passwd': 'root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash\n',
};
