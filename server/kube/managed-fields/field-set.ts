// A set of field paths in the very form of FieldsV1: a tree of objects, one member per path element (`f:name`,
// `k:{"name":"a"}`, `v:"a"`). A node without children, or with the member ".", is in the set itself. The root is a node
// that is never in the set. Sets are never modified, so operations share subtrees and answer an argument itself when
// nothing changes. Models sigs.k8s.io/structured-merge-diff/fieldpath.

export interface FieldSet {
  readonly [element: string]: FieldSet;
}

interface Growing {
  [element: string]: FieldSet;
}

/** The node of a path that is in the set and has nothing below it; also the empty set, at the root. */
export const LEAF: FieldSet = Object.freeze({});
const SELF = '.';

/** A node's children, with the path itself in the set. */
export function asMember(children: FieldSet): FieldSet {
  return isEmpty(children) || SELF in children ? children : { [SELF]: LEAF, ...children };
}

/** Whether a set has no paths (at the root), or a node nothing below it. */
export function isEmpty(set: FieldSet): boolean {
  for (const _ in set) return false;
  return true;
}

function isMember(node: FieldSet): boolean {
  return SELF in node || isEmpty(node);
}

/** The node below `element`, if any path goes there. */
export function child(set: FieldSet, element: string): FieldSet | undefined {
  return element === SELF ? undefined : set[element];
}

/** Whether the path of one element is in the set. */
export function hasElement(set: FieldSet, element: string): boolean {
  const node = child(set, element);
  return node !== undefined && isMember(node);
}

/** Whether the set reaches below a path of one element. */
export function reachesBelow(node: FieldSet | undefined): node is FieldSet {
  if (node === undefined) return false;
  for (const element in node) if (element !== SELF) return true;
  return false;
}

/** Puts a node together: undefined when there is neither a member nor a child. */
function nodeOf(member: boolean, children: Growing): FieldSet | undefined {
  if (isEmpty(children)) return member ? LEAF : undefined;
  return member ? { [SELF]: LEAF, ...children } : children;
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a;
  return isEmpty(a) ? b : unionNodes(a, b, true);
}

function unionNodes(a: FieldSet, b: FieldSet, root: boolean): FieldSet {
  if (a === b) return a;
  const merged: Growing = {};
  let changed = false;
  if (!root && (isMember(a) || isMember(b))) {
    changed = !isMember(a);
    if (reachesBelow(a) || reachesBelow(b)) merged[SELF] = LEAF;
  }
  for (const element in a) {
    if (element === SELF) continue;
    const left = a[element] ?? LEAF;
    const right = b[element];
    const both = right ? unionNodes(left, right, false) : left;
    if (both !== left) changed = true;
    merged[element] = both;
  }
  for (const element in b) {
    if (element === SELF || element in a) continue;
    merged[element] = b[element] ?? LEAF;
    changed = true;
  }
  return changed ? merged : a;
}

/** The paths of `a` that are not in `b`; what lies below a path of `b` stays. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a) || isEmpty(b)) return a;
  return differenceNodes(a, b, true) ?? LEAF;
}

function differenceNodes(a: FieldSet, b: FieldSet, root: boolean): FieldSet | undefined {
  if (a === b) return undefined;
  const wasMember = !root && isMember(a);
  const member = wasMember && !isMember(b);
  const children: Growing = {};
  let changed = member !== wasMember;
  for (const element in a) {
    if (element === SELF) continue;
    const left = a[element] ?? LEAF;
    const right = b[element];
    const rest = right ? differenceNodes(left, right, false) : left;
    if (rest !== left) changed = true;
    if (rest) children[element] = rest;
  }
  return changed ? nodeOf(member, children) : a;
}

/** The paths of `a` that neither are in `b` nor lie below one of its paths. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  const children: Growing = {};
  let changed = false;
  for (const element in a) {
    const left = a[element] ?? LEAF;
    const right = element === SELF ? undefined : b[element];
    if (right && isMember(right)) {
      changed = true;
      continue;
    }
    const rest = right ? recursiveDifference(left, right) : left;
    if (rest !== left) changed = true;
    if (rest === left || !isEmpty(rest)) children[element] = rest;
  }
  return changed ? children : a;
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  if (isEmpty(a) || isEmpty(b)) return LEAF;
  return intersectNodes(a, b, true) ?? LEAF;
}

function intersectNodes(a: FieldSet, b: FieldSet, root: boolean): FieldSet | undefined {
  const children: Growing = {};
  for (const element in a) {
    const left = a[element];
    const right = b[element];
    if (element === SELF || !left || !right) continue;
    const both = intersectNodes(left, right, false);
    if (both) children[element] = both;
  }
  return nodeOf(!root && isMember(a) && isMember(b), children);
}

/** Calls back for every path of the set: the paths of a level before those below them. */
export function eachPath(
  set: FieldSet,
  visit: (path: readonly string[]) => void,
  prefix: readonly string[] = [],
): void {
  const elements = Object.keys(set).filter((element) => element !== SELF);
  for (const element of elements) if (hasElement(set, element)) visit([...prefix, element]);
  for (const element of elements) {
    const below = set[element];
    if (below && reachesBelow(below)) eachPath(below, visit, [...prefix, element]);
  }
}

/** The set with its elements in upstream's order; the very same object when they are. */
export function sorted(set: FieldSet): FieldSet {
  if (isSorted(set)) return set;
  const ordered: Growing = {};
  for (const element of Object.keys(set).sort(compareElements))
    ordered[element] = sorted(set[element] ?? LEAF);
  return ordered;
}

function isSorted(set: FieldSet): boolean {
  let last: string | undefined;
  for (const element in set) {
    if (last !== undefined && compareElements(last, element) > 0) return false;
    last = element;
    const below = set[element];
    if (below && !isSorted(below)) return false;
  }
  return true;
}

const KINDS = '.fkvi';
/** Strings compare as their JSON does; numbers do not. */
const HAS_NUMBER = /:[-\d]/;

function compareElements(a: string, b: string): number {
  const kind = a.charAt(0);
  if (kind !== b.charAt(0)) return KINDS.indexOf(kind) - KINDS.indexOf(b.charAt(0));
  if ((kind === 'k' || kind === 'v') && (HAS_NUMBER.test(a) || HAS_NUMBER.test(b))) {
    return compareValues(parse(a), parse(b));
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

function parse(element: string): unknown {
  try {
    return JSON.parse(element.slice(2)) as unknown;
  } catch {
    return element;
  }
}

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === 'object' && typeof b === 'object' && a !== null && b !== null) {
    const left = Object.entries(a);
    const right = Object.entries(b);
    for (let i = 0; i < Math.min(left.length, right.length); i++) {
      const [leftName = '', leftValue] = left[i] ?? [];
      const [rightName = '', rightValue] = right[i] ?? [];
      const order =
        leftName < rightName ? -1 : leftName > rightName ? 1 : compareValues(leftValue, rightValue);
      if (order !== 0) return order;
    }
    return left.length - right.length;
  }
  return typeof a < typeof b ? -1 : typeof a > typeof b ? 1 : 0;
}

/** Whether a value has the form of a set; what clients send is not trusted. */
export function isFieldSet(value: unknown, depth = 0): value is FieldSet {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  for (const [element, below] of Object.entries(value)) {
    if (element !== SELF && (element.length < 2 || element.charAt(1) !== ':')) return false;
    if (!isFieldSet(below, depth + 1)) return false;
  }
  return true;
}

const MAX_DEPTH = 100;
