import type { Image } from '#server/node';
import { runCloudControllerManager } from './command/command.ts';
import { BINARY, VERSION } from './command/identity.ts';

/** The image whose program is the cloud-controller-manager: `quay.io/kubevirt/kubevirt-cloud-controller-manager`. */
export function ccmImage(): Image {
  const path = `/bin/${BINARY}`;
  return {
    repository: `quay.io/kubevirt/${BINARY}`,
    tags: [VERSION, /^v0\.\d+\.\d+$/],
    entrypoint: [path],
    command: [],
    size: 29_400_000,
    programs: { [path]: { run: runCloudControllerManager } },
  };
}
