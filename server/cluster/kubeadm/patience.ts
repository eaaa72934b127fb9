import { ConnectionError } from '#server/client';
import type { KubeadmMachine } from './init.ts';

/** kubeadm's default for discovery and for the TLS bootstrap, milliseconds. */
const PATIENCE = 5 * 60_000;
/** Between two tries, milliseconds. */
const PAUSE = 1_000;

/**
 * Runs `phase`, again and again while no API server answers, as kubeadm's own waits do; the last ConnectionError is
 * thrown after five minutes, everything else at once. Rejects when the machine is switched off meanwhile.
 */
export async function whileNobodyAnswers<T>(machine: KubeadmMachine, phase: () => Promise<T>): Promise<T> {
  const end = machine.now() + PATIENCE;
  for (;;) {
    try {
      return await phase();
    } catch (error) {
      if (!(error instanceof ConnectionError) || machine.now() >= end) throw error;
      await machine.sleep(PAUSE);
    }
  }
}
