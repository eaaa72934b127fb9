import type { Client } from '#server/client';
import { secrets } from '#server/kube';
import type { VirtualMachineInstance } from './resources.ts';

/** The keys KubeVirt accepts in a Secret of user data, in this order. */
const SECRET_KEYS = ['userdata', 'userData'];

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}

/**
 * The cloud-init user data of a machine: inline, or from the Secret its volume names; empty when it has none.
 * Rejects with StatusError 404 when the Secret is not there yet. Models kubevirt pkg/cloud-init.
 */
export async function readUserData(client: Client, vmi: VirtualMachineInstance): Promise<string> {
  const volume = vmi.spec.volumes?.find(
    (candidate) => candidate.cloudInitNoCloud ?? candidate.cloudInitConfigDrive,
  );
  const source = volume?.cloudInitNoCloud ?? volume?.cloudInitConfigDrive;
  if (!source) return '';
  if (source.userData !== undefined) return source.userData;
  if (source.userDataBase64 !== undefined) return decode(source.userDataBase64);
  if (!source.secretRef) return '';
  const secret = await client.get(secrets, {
    namespace: vmi.metadata.namespace,
    name: source.secretRef.name,
  });
  const key = SECRET_KEYS.find((candidate) => secret.data?.[candidate] !== undefined);
  return key ? decode(secret.data?.[key] ?? '') : '';
}
