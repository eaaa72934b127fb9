import { isConflict } from '#server/kube';

/** How often a write is tried in all before its last Conflict is given to the caller. */
const MAX_TRIES = 5;

/**
 * Runs `attempt` again while it rejects with 409 Conflict, five times in all; `attempt` must read the object anew each
 * time. Any other error, and the last Conflict, is rethrown. No wait between tries: a fresh read is what helps.
 * Models k8s.io/client-go/util/retry RetryOnConflict with DefaultRetry.
 */
export async function retryOnConflict<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error) || tries >= MAX_TRIES) throw error;
    }
  }
}
