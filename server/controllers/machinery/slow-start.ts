/**
 * Calls `action` `count` times, first once, then in ever doubling batches, so that one refusal does not come back a
 * hundredfold. Resolves with how many succeeded and the first error: after a batch with an error nothing more is tried.
 * Models slowStartBatch of kubernetes/pkg/controller/replicaset.
 */
export async function slowStart(
  count: number,
  action: (index: number) => Promise<void>,
): Promise<{ succeeded: number; failure?: { error: unknown } }> {
  let succeeded = 0;
  for (let batch = 1, left = count; left > 0; batch *= 2) {
    const size = Math.min(batch, left);
    const first = count - left;
    const results = await Promise.allSettled(
      Array.from({ length: size }, (_, index) => action(first + index)),
    );
    const failed = results.find((result) => result.status === 'rejected');
    succeeded += results.filter((result) => result.status === 'fulfilled').length;
    if (failed) return { succeeded, failure: { error: failed.reason as unknown } };
    left -= size;
  }
  return { succeeded };
}
