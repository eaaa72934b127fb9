import { type Clock, errorMessage } from '#server/base';
import type { Client } from '#server/client';

/** Milliseconds an API server is given to become healthy. */
const TIMEOUT = 10_000;
/** Milliseconds before the first and at most before every further look. */
const FIRST_DELAY = 10;
const LONGEST_DELAY = 1000;

/**
 * Waits until the API server's /healthz says ok. Resolves with undefined then, with the reason when it did not within ten
 * seconds; rejects when `signal` aborts. Models k8s.io/controller-manager/app (WaitForAPIServer); looks more often at
 * first, because here an API server is up within milliseconds.
 */
export async function waitForApiServer(
  client: Client,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const begin = clock.now();
  let waited = 0;
  let delay = FIRST_DELAY;
  for (;;) {
    const problem = await probe(client);
    if (problem === undefined) return undefined;
    if (Math.max(waited, clock.now() - begin) >= TIMEOUT) {
      return `timed out waiting for the condition: ${problem}`;
    }
    await clock.sleep(delay, signal);
    waited += delay;
    delay = Math.min(delay * 2, LONGEST_DELAY);
  }
}

async function probe(client: Client): Promise<string | undefined> {
  try {
    const { status, body } = await client.raw('/healthz');
    return status === 200 ? undefined : `APIServer isn't healthy: ${String(body)}`;
  } catch (error) {
    return `failed to get apiserver /healthz status: ${errorMessage(error)}`;
  }
}
