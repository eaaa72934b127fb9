import type { CustomResourceDefinition } from '#server/kube';
import { coreDefinitions } from './core.ts';
import { kubeadmDefinitions } from './kubeadm.ts';
import { kubevirtDefinitions } from './kubevirt.ts';

/** All CustomResourceDefinitions this room's controllers need. */
export function clusterApiDefinitions(): CustomResourceDefinition[] {
  return [...coreDefinitions(), ...kubeadmDefinitions(), ...kubevirtDefinitions()];
}
