import { errorMessage } from '#server/base';
import type { Client } from '#server/client';
import { type Discovered, discover } from '#server/controllers/machinery';
import { isNotFound, type KubeObject, methodNotAllowed, type Pod, StatusError } from '#server/kube';
import type { Findings } from './conditions.ts';

/** Seconds to wait for what only a finalizer holds. */
const FINALIZER_SECONDS = 15;

export interface Pass extends Findings {
  /** Seconds until what remains may be gone. */
  estimate: number;
}

function isMethodNotSupported(error: unknown): boolean {
  return error instanceof StatusError && error.code === 405;
}

/** Seconds until the last of the pods may have ended. */
function graceOf(pods: readonly KubeObject[]): number {
  return Math.max(0, ...pods.map((object) => (object as Pod).spec.terminationGracePeriodSeconds ?? 0));
}

/** Deletes all of one kind and counts what is left. */
async function deleteKind(
  client: Client,
  namespace: string,
  { resource, verbs }: Discovered,
  pass: Pass,
): Promise<void> {
  const isPods = resource.group === '' && resource.plural === 'pods';
  const before = (await client.list(resource, { namespace })).items;
  if (before.length === 0) return;
  try {
    if (!verbs.includes('deletecollection')) throw methodNotAllowed(resource, 'deletecollection');
    await client.deleteCollection(resource, { namespace }, { propagationPolicy: 'Background' });
  } catch (error) {
    if (!isMethodNotSupported(error)) throw error;
    for (const { metadata } of before) {
      try {
        await client.delete(
          resource,
          { namespace, name: metadata.name },
          { propagationPolicy: 'Background' },
        );
      } catch (refusal) {
        if (!isNotFound(refusal)) throw refusal;
      }
    }
  }
  const { items } = await client.list(resource, { namespace });
  if (items.length === 0) return;
  pass.remaining.push({ resource, count: items.length });
  if (isPods) pass.estimate = Math.max(pass.estimate, graceOf(items));
  for (const { metadata } of items) {
    for (const finalizer of metadata.finalizers ?? [])
      pass.finalizers.set(finalizer, (pass.finalizers.get(finalizer) ?? 0) + 1);
    if (metadata.finalizers?.length) pass.estimate = Math.max(pass.estimate, FINALIZER_SECONDS);
  }
}

/**
 * One pass: deletes what the namespace holds, pods before everything else, and tells what remains. Does not reject for
 * what a single kind refuses: that is among the findings. Models deleteAllContent.
 */
export async function deleteContent(client: Client, namespace: string): Promise<Pass> {
  const pass: Pass = {
    discoveryFailures: [],
    deletionFailures: [],
    remaining: [],
    finalizers: new Map(),
    estimate: 0,
  };
  let kinds: Discovered[] = [];
  try {
    const { resources, failures } = await discover(client);
    kinds = resources.filter(
      ({ resource, verbs }) => resource.namespaced && verbs.includes('delete') && verbs.includes('list'),
    );
    pass.discoveryFailures = failures;
  } catch (error) {
    pass.discoveryFailures = [{ groupVersion: 'all groups', error: errorMessage(error) }];
  }
  const isPods = ({ resource }: Discovered): boolean => resource.group === '' && resource.plural === 'pods';
  const attempt = async (kind: Discovered): Promise<void> => {
    try {
      await deleteKind(client, namespace, kind, pass);
    } catch (error) {
      // A kind that vanished since it was discovered has no objects either.
      if (!isNotFound(error)) pass.deletionFailures.push(errorMessage(error));
    }
  };
  for (const kind of kinds.filter(isPods)) await attempt(kind);
  if (pass.remaining.length > 0) return pass;
  for (const kind of kinds.filter((each) => !isPods(each))) await attempt(kind);
  return pass;
}
