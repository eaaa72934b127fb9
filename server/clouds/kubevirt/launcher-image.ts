import type { Image } from '#server/node';
import { createVirtLaunchers, type VirtLaunchers } from './launcher.ts';

/**
 * The virt-launcher image for an image catalogue. `launchers` is the meeting point that createKubeVirt got too; without
 * one, launchers do not hear of their guest's end and run until their pod is deleted.
 */
export function virtLauncherImage(launchers: VirtLaunchers = createVirtLaunchers()): Image {
  return {
    repository: 'quay.io/kubevirt/virt-launcher',
    tags: ['v1.7.0', /^v1\.\d+\.\d+$/],
    entrypoint: ['/usr/bin/virt-launcher-monitor'],
    command: [],
    user: 107,
    size: 423_000_000,
    programs: { '/usr/bin/virt-launcher-monitor': launchers.program },
  };
}
