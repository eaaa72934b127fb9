import { isRecord } from '../json.ts';

/**
 * The JSONPath of printer columns, compiled: gives every value the path leads to, in order; none when something on the
 * way is missing. Knows `.a.b`, `['a.b']`, `.a\.b`, `[0]`, `[-1]`, `[*]`, `.*`, `..a` and filters
 * (`[?(@.type=="Ready")]`, with `==`, `!=`, `<`, `<=`, `>`, `>=` or mere existence). Undefined: not such a path.
 * Models k8s.io/client-go/util/jsonpath, the part a CustomResourceDefinition's columns may use.
 */
export function compileJsonPath(path: string): ((root: unknown) => unknown[]) | undefined {
  const steps = parse(path);
  if (!steps) return undefined;
  return (root) => steps.reduce<unknown[]>((values, step) => values.flatMap(step), [root]);
}

type Step = (value: unknown) => unknown[];

const MOST_STEPS = 64;
const NAME = /^\.((?:\\.|[^.[\]\\])+)/;
const QUOTED = /^\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]/;
const INDEX = /^\[\s*(-?\d+)\s*\]/;
const SLICE = /^\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]/;
const FILTER =
  /^\[\?\(\s*@((?:\.(?:\\.|[^.[\]\\=!<>\s()])+|\['[^']*'\])*)\s*(?:(==|!=|<=|>=|<|>)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?[\d.]+|true|false))?\s*\)\]/;

function parse(path: string): Step[] | undefined {
  const steps: Step[] = [];
  let rest = path === '.' ? '' : path;
  while (rest) {
    const parsed = parseStep(rest);
    if (!parsed || steps.length >= MOST_STEPS) return undefined;
    steps.push(parsed.step);
    rest = rest.slice(parsed.length);
  }
  return steps;
}

function unescape(text: string): string {
  return text.replace(/\\(.)/g, '$1');
}

function parseStep(text: string): { step: Step; length: number } | undefined {
  if (text.startsWith('..')) {
    const name = NAME.exec(text.slice(1))?.[1];
    return name === undefined ? undefined : { step: descendants(unescape(name)), length: name.length + 2 };
  }
  const star = /^(?:\.\*|\[\s*\*\s*\])/.exec(text);
  if (star) return { step: members, length: star[0].length };
  const name = NAME.exec(text);
  if (name) return { step: member(unescape(name[1] ?? '')), length: name[0].length };
  const quoted = QUOTED.exec(text);
  if (quoted) return { step: member(unescape(quoted[1] ?? quoted[2] ?? '')), length: quoted[0].length };
  const index = INDEX.exec(text);
  if (index) return { step: item(Number(index[1])), length: index[0].length };
  const slice = SLICE.exec(text);
  if (slice) return { step: range(slice[1] ?? '', slice[2] ?? ''), length: slice[0].length };
  const filter = FILTER.exec(text);
  const condition = filter && filterStep(filter[1] ?? '', filter[2], filter[3]);
  return condition ? { step: condition, length: filter[0].length } : undefined;
}

function member(name: string): Step {
  return (value) => (isRecord(value) && Object.hasOwn(value, name) ? [value[name]] : []);
}

function members(value: unknown): unknown[] {
  return isList(value) ? value : isRecord(value) ? Object.values(value) : [];
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

function item(index: number): Step {
  return (value) => {
    if (!isList(value)) return [];
    const at = index < 0 ? value.length + index : index;
    return at >= 0 && at < value.length ? [value[at]] : [];
  };
}

function range(from: string, to: string): Step {
  return (value) =>
    isList(value) ? value.slice(from === '' ? 0 : Number(from), to === '' ? undefined : Number(to)) : [];
}

function descendants(name: string): Step {
  const own = member(name);
  const visit: Step = (value) => [...own(value), ...members(value).flatMap(visit)];
  return visit;
}

function filterStep(
  path: string,
  operator: string | undefined,
  literal: string | undefined,
): Step | undefined {
  const steps = parse(path);
  if (!steps) return undefined;
  const find = (value: unknown): unknown[] =>
    steps.reduce<unknown[]>((values, step) => values.flatMap(step), [value]);
  const wanted = literal === undefined ? undefined : literalValue(literal);
  const holds = (found: unknown[]): boolean => {
    if (operator === undefined) return found.length > 0;
    const [first] = found;
    return found.length > 0 && compare(first, operator, wanted);
  };
  return (value) => members(value).filter((candidate) => holds(find(candidate)));
}

function literalValue(text: string): unknown {
  if (text.startsWith("'") || text.startsWith('"')) return unescape(text.slice(1, -1));
  return text === 'true' ? true : text === 'false' ? false : Number(text);
}

function compare(value: unknown, operator: string, wanted: unknown): boolean {
  if (operator === '==') return value === wanted;
  if (operator === '!=') return value !== wanted;
  if (typeof value !== typeof wanted || (typeof value !== 'number' && typeof value !== 'string'))
    return false;
  const other = wanted as typeof value;
  if (operator === '<') return value < other;
  if (operator === '<=') return value <= other;
  return operator === '>' ? value > other : value >= other;
}
