import { deepEqual } from './equality.ts';
import { cloneJson, getMember, type JsonObject, setMember } from './json-value.ts';
import { failure } from './status-error.ts';

/** One operation of RFC 6902. */
export interface JsonPatchOperation {
  op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  path: string;
  from?: string;
  value?: unknown;
}

const MAX_OPERATIONS = 10_000;
const MAX_COPIED_CHARACTERS = 3 * 1024 * 1024;
const SHOWN_MESSAGE = 'the server rejected our request due to an error in our request';

type Container = JsonObject | unknown[];

/** Where a path ends: the object or list that holds it, and the last step. */
interface Place {
  container: Container;
  key: string;
}

/**
 * Applies a JSON patch to a copy of the document, the operations in order, all or none. As upstream: `replace` of a
 * missing member adds it, negative list indices count from the end, `copy` may copy at most 3 MiB in all. Throws
 * StatusError 422 when an operation does not apply and 413 when there are more than 10000 of them.
 * Models gopkg.in/evanphx/json-patch.v4 and apiserver/pkg/endpoints/handlers/patch.go.
 */
export function applyJsonPatch(document: unknown, operations: readonly JsonPatchOperation[]): unknown {
  if (operations.length > MAX_OPERATIONS) {
    const message = `Request entity is too large: The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`;
    throw failure(413, 'RequestEntityTooLarge', message);
  }
  const state = { root: cloneJson(document), copied: 0 };
  for (const operation of operations) applyOperation(state, operation);
  return state.root;
}

interface State {
  root: unknown;
  copied: number;
}

function applyOperation(state: State, operation: JsonPatchOperation): void {
  if (typeof operation.path !== 'string') throw refuse();
  switch (operation.op) {
    case 'add':
      return add(find(state.root, operation.path), cloneJson(operation.value ?? null));
    case 'remove':
      return remove(find(state.root, operation.path));
    case 'replace':
      return replace(state, operation);
    case 'move': {
      const from = find(state.root, operation.from);
      const value = read(from);
      remove(from);
      return add(find(state.root, operation.path), value ?? null);
    }
    case 'copy': {
      const value = read(find(state.root, operation.from)) ?? null;
      const place = find(state.root, operation.path);
      state.copied += JSON.stringify(value).length;
      if (state.copied > MAX_COPIED_CHARACTERS) throw refuse();
      return add(place, cloneJson(value));
    }
    case 'test': {
      const actual = operation.path === '' ? state.root : read(find(state.root, operation.path));
      if (!deepEqual(actual ?? null, operation.value ?? null)) throw refuse();
      return;
    }
    default:
      throw refuse();
  }
}

function replace(state: State, operation: JsonPatchOperation): void {
  const value = cloneJson(operation.value ?? null);
  if (operation.path === '') {
    if (typeof value !== 'object' || value === null) throw refuse();
    state.root = value;
    return;
  }
  const place = find(state.root, operation.path);
  if (Array.isArray(place.container)) place.container[existingIndex(place.container, place.key)] = value;
  else setMember(place.container, place.key, value);
}

function find(root: unknown, path: string | undefined): Place {
  const steps = path?.split('/') ?? [];
  if (steps.length < 2) throw refuse();
  let container = root;
  for (const step of steps.slice(1, -1)) {
    if (!isContainer(container)) throw refuse();
    container = read({ container, key: decodeStep(step) });
  }
  if (!isContainer(container)) throw refuse();
  return { container, key: decodeStep(steps[steps.length - 1] ?? '') };
}

function read({ container, key }: Place): unknown {
  return Array.isArray(container) ? container[existingIndex(container, key)] : getMember(container, key);
}

function add({ container, key }: Place, value: unknown): void {
  if (!Array.isArray(container)) return setMember(container, key, value);
  if (key === '-') container.push(value);
  else container.splice(readIndex(key, container.length + 1), 0, value);
}

function remove({ container, key }: Place): void {
  if (Array.isArray(container)) container.splice(existingIndex(container, key), 1);
  else if (Object.hasOwn(container, key)) delete container[key];
  else throw refuse();
}

function existingIndex(list: readonly unknown[], key: string): number {
  return readIndex(key, list.length);
}

function readIndex(key: string, size: number): number {
  if (!/^[+-]?\d{1,15}$/.test(key)) throw refuse();
  const index = Number(key);
  const positive = index < 0 ? index + size : index;
  if (positive < 0 || positive >= size) throw refuse();
  return positive;
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function decodeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Upstream keeps the reason to itself. */
function refuse(): Error {
  return failure(422, 'Invalid', SHOWN_MESSAGE, {});
}
