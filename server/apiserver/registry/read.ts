import {
  badRequest,
  expired,
  type FieldError,
  invalid,
  notFound,
  StatusError,
  type UnstructuredObject,
} from '#server/kube';
import { CompactedError, type Entry, FutureRevisionError } from '#server/store';
import { objectStorageKey } from '../storage.ts';
import type { ObjectAnswer, Operation, RegistryEnvironment } from './operation.ts';
import { revisionOf, tooLargeResourceVersion } from './options.ts';
import { type Selection, selectionOf } from './selection.ts';

/** Entries read at once while a selector leaves some out. */
const SELECT_BATCH = 500;

export interface ListAnswer {
  readonly entries: readonly Entry[];
  readonly revision: number;
  readonly continueToken: string;
  readonly remaining: number | undefined;
}

/** GET of one object. Models apiserver/pkg/endpoints/handlers.GetResource. */
export function getObject(env: RegistryEnvironment, op: Operation): ObjectAnswer {
  const minimum = revisionOf(op.query['resourceVersion']) ?? 0;
  if (minimum > env.storage.store.revision)
    throw tooLargeResourceVersion(minimum, env.storage.store.revision);
  const name = op.name ?? '';
  const entry = env.storage.get(objectStorageKey(op.kind, op.namespace, name));
  if (!entry) throw notFound(op.kind, name);
  return {
    code: 200,
    stored: entry,
    kind: op.kind,
    get object() {
      return asServed(env, op, env.storage.decode(entry));
    },
  };
}

/** The object in the version that was asked for (conversion `None`: only apiVersion differs). */
export function asServed(
  env: RegistryEnvironment,
  op: Pick<Operation, 'kind'>,
  object: UnstructuredObject,
): UnstructuredObject {
  if (!env.kinds.isMultiVersion(op.kind.group, op.kind.plural)) return object;
  const apiVersion = op.kind.group ? `${op.kind.group}/${op.kind.version}` : op.kind.version;
  return object.apiVersion === apiVersion ? object : Object.freeze({ ...object, apiVersion });
}

/**
 * LIST: the entries selected, at one revision. Throws 410 when the revision asked for is compacted.
 * Models apiserver/pkg/storage/etcd3 GetList and metav1's ListOptions rules.
 */
export function listObjects(env: RegistryEnvironment, op: Operation): ListAnswer {
  checkListOptions(op.query);
  const selection = selectionOf(op.kind, op.namespace, op.name, op.query);
  const limit = Math.max(0, Number(op.query['limit'] ?? 0) || 0);
  const token = op.query['continue'] ? decodeContinue(op.query['continue'], selection.prefix) : undefined;
  const asked = revisionOf(op.query['resourceVersion']) ?? 0;
  const current = env.storage.store.revision;
  if (!token && asked > current) throw tooLargeResourceVersion(asked, current);
  const exact =
    asked > 0 &&
    (op.query['resourceVersionMatch'] === 'Exact' || (limit > 0 && !op.query['resourceVersionMatch']));
  const revision = token ? (token.revision > 0 ? token.revision : undefined) : exact ? asked : undefined;
  try {
    return collect(env, selection, { limit, revision, after: token?.after });
  } catch (error) {
    if (error instanceof CompactedError) {
      throw token
        ? expiredContinue(token.after, selection.prefix)
        : expired('The resourceVersion for the provided list is too old.');
    }
    if (error instanceof FutureRevisionError) throw tooLargeResourceVersion(revision ?? 0, current);
    throw error;
  }
}

function collect(
  env: RegistryEnvironment,
  selection: Selection,
  page: { limit: number; revision: number | undefined; after: string | undefined },
): ListAnswer {
  const { store } = env.storage;
  const filtered = selection.matchesKey !== undefined || selection.matchesObject !== undefined;
  const batch = page.limit > 0 ? (filtered ? Math.max(page.limit, SELECT_BATCH) : page.limit) : 0;
  const found: Entry[] = [];
  let revision = page.revision;
  let after = page.after;
  for (;;) {
    const result = store.list(selection.prefix, {
      ...(revision !== undefined ? { revision } : {}),
      ...(after !== undefined ? { after } : {}),
      ...(batch > 0 ? { limit: batch } : {}),
    });
    revision ??= result.revision;
    if (!filtered) {
      const last = result.entries.at(-1);
      const continueToken = result.more && last ? encodeContinue(last.key, selection.prefix, revision) : '';
      return {
        entries: result.entries,
        revision,
        continueToken,
        remaining: result.more ? result.remaining : undefined,
      };
    }
    for (const entry of result.entries) {
      if (!isSelected(env, selection, entry)) continue;
      const previous = found.at(-1);
      if (page.limit > 0 && found.length === page.limit && previous) {
        const remaining = selection.empty ? result.remaining : undefined;
        return {
          entries: found,
          revision,
          continueToken: encodeContinue(previous.key, selection.prefix, revision),
          remaining,
        };
      }
      found.push(entry);
    }
    const last = result.entries.at(-1);
    if (!result.more || !last) return { entries: found, revision, continueToken: '', remaining: undefined };
    after = last.key;
  }
}

export function isSelected(
  env: RegistryEnvironment,
  selection: Selection,
  entry: Pick<Entry, 'key' | 'value' | 'modRevision'>,
): boolean {
  if (selection.matchesKey && !selection.matchesKey(entry.key)) return false;
  return !selection.matchesObject || selection.matchesObject(env.storage.decode(entry));
}

/** Models ValidateListOptions of k8s.io/apimachinery/pkg/apis/meta/internalversion/validation. */
export function checkListOptions(query: Readonly<Record<string, string>>): void {
  for (const name of ['limit', 'timeoutSeconds']) {
    const value = query[name];
    if (value && !/^[+-]?\d+$/.test(value))
      throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  }
  const errors: FieldError[] = [];
  const forbid = (field: string, detail: string): void =>
    void errors.push({ type: 'FieldValueForbidden', field, detail });
  const match = query['resourceVersionMatch'];
  const watching = query['watch'] !== undefined;
  const sendInitial = query['sendInitialEvents'];
  if (match && !(watching && sendInitial !== undefined)) {
    if (watching) forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden for watch');
    if (!query['resourceVersion']) {
      forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided');
    }
    if (query['continue'])
      forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided');
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push({
        type: 'FieldValueNotSupported',
        field: 'resourceVersionMatch',
        value: match,
        detail: 'supported values: "Exact", "NotOlderThan", ""',
      });
    }
    if (match === 'Exact' && query['resourceVersion'] === '0') {
      forbid('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
    }
  }
  if (sendInitial !== undefined && watching && match !== 'NotOlderThan') {
    forbid('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  }
  if (sendInitial !== undefined && !watching)
    forbid('sendInitialEvents', 'sendInitialEvents is forbidden for list');
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);
  if (query['continue'] && query['resourceVersion'] && query['resourceVersion'] !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
}

interface ContinueToken {
  v: string;
  rv: number;
  start: string;
}

/** Models apiserver/pkg/storage/continue.go: the key behind which to go on, relative to the prefix. */
function encodeContinue(lastKey: string, prefix: string, revision: number): string {
  const token: ContinueToken = {
    v: 'meta.k8s.io/v1',
    rv: revision,
    start: `${lastKey.slice(prefix.length)}\0`,
  };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

function decodeContinue(text: string, prefix: string): { revision: number; after: string } {
  const foreign = text.search(/[^\w-]/);
  if (foreign >= 0)
    throw badRequest(`continue key is not valid: illegal base64 data at input byte ${foreign}`);
  const json = Buffer.from(text, 'base64url').toString('utf8');
  let token: Partial<ContinueToken>;
  try {
    token = JSON.parse(json) as Partial<ContinueToken>;
  } catch {
    throw badRequest(
      `continue key is not valid: invalid character '${[...json][0] ?? ''}' looking for beginning of value`,
    );
  }
  if (token === null || typeof token !== 'object' || token.v !== 'meta.k8s.io/v1') {
    throw badRequest(
      `continue key is not valid: server does not recognize this encoded version ${token?.v ?? ''}`,
    );
  }
  if (typeof token.rv !== 'number' || !Number.isSafeInteger(token.rv) || token.rv === 0) {
    throw badRequest(
      'continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)',
    );
  }
  if (typeof token.start !== 'string' || token.start === '') {
    throw badRequest('continue key is not valid: encoded start key empty (version meta.k8s.io/v1)');
  }
  const start = token.start.replace(/\0$/, '');
  if (start.split('/').some((part) => part === '' || part === '.' || part === '..')) {
    throw badRequest(`continue key is not valid: ${start}`);
  }
  return { revision: token.rv, after: prefix + start };
}

/** Models handleCompactedErrorForPaging: the answer carries a token to go on at the newest revision. */
function expiredContinue(after: string, prefix: string): StatusError {
  const error = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
      'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
      'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
      'deleted between the time the first chunk was returned and now may show up in the list.',
  );
  return new StatusError({ ...error.status, metadata: { continue: encodeContinue(after, prefix, -1) } });
}
