import type { FileSystem } from '../contract.ts';

const CNI_DIRECTORY = '/etc/cni/net.d';

/** What a Node says while no CNI plugin has put its configuration down. */
export const NETWORK_NOT_READY =
  'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized';

/** Whether containerd found a CNI configuration: a file in /etc/cni/net.d of the machine. */
export interface RuntimeState {
  readonly networkReady: boolean;
  stop(): void;
}

export function watchRuntimeState(files: FileSystem, onChange: () => void): RuntimeState {
  const look = (): boolean =>
    files.exists(CNI_DIRECTORY) &&
    files.readdir(CNI_DIRECTORY).some((name) => /\.(conf|conflist|json)$/.test(name));
  let networkReady = look();
  const watch = files.watch(CNI_DIRECTORY, () => {
    const now = look();
    if (now === networkReady) return;
    networkReady = now;
    onChange();
  });
  return {
    get networkReady() {
      return networkReady;
    },
    stop: () => watch.stop(),
  };
}
