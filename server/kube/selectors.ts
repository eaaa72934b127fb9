import {
  type LabelOperator,
  type LabelRequirement,
  parseLabelRequirements,
  readInt64,
  requirementErrors,
} from './selector-parser.ts';
import { badRequest } from './status-error.ts';
import type { LabelSelector } from './types.generated.ts';

/** One term of a field selector; `==` is read as `=`. */
export interface FieldRequirement {
  field: string;
  operator: '=' | '!=';
  value: string;
}

type Labels = Readonly<Record<string, string>>;

const MAX_SELECTOR_LENGTH = 64 * 1024;

/**
 * The test a `labelSelector` parameter stands for; the empty text matches everything. Throws StatusError 400 in
 * upstream's words. Models labels.Parse of k8s.io/apimachinery/pkg/labels.
 */
export function parseLabelSelector(text: string): (labels: Labels | undefined) => boolean {
  if (text.length > MAX_SELECTOR_LENGTH) throw badRequest('label selector is too long');
  const requirements = parseLabelRequirements(text);
  return (labels) => requirements.every((requirement) => matches(requirement, labels ?? {}));
}

/**
 * Whether labels satisfy a metav1.LabelSelector. No selector matches nothing, an empty one everything; a term with an
 * unknown operator or without the values it needs matches nothing. Models metav1.LabelSelectorAsSelector.
 */
export function matchesLabelSelector(
  selector: LabelSelector | undefined,
  labels: Labels | undefined,
): boolean {
  if (!selector) return false;
  const present = labels ?? {};
  const wanted = selector.matchLabels;
  if (wanted) for (const key of Object.keys(wanted)) if (lookup(present, key) !== wanted[key]) return false;
  for (const expression of selector.matchExpressions ?? []) {
    const operator = EXPRESSION_OPERATORS.get(expression.operator);
    if (!operator) return false;
    if (!matches({ key: expression.key, operator, values: expression.values ?? [] }, present)) return false;
  }
  return true;
}

/** Whether labels hold every pair of a plain map selector (Service, ReplicationController); an empty one matches all. */
export function matchesLabels(wanted: Labels, labels: Labels | undefined): boolean {
  const present = labels ?? {};
  return Object.keys(wanted).every((key) => lookup(present, key) === wanted[key]);
}

/** A selector as text for people: `<none>` when empty, `<error>` when invalid. Models metav1.FormatLabelSelector. */
export function formatLabelSelector(selector: LabelSelector): string {
  const requirements = requirementsOf(selector);
  if (!requirements) return '<error>';
  return requirements.map(renderRequirement).join(',') || '<none>';
}

/**
 * A selector as text for programs (`status.selector` of a Scale, `labelSelector=`): empty when it matches everything.
 * Throws StatusError 400 when invalid. Models LabelSelectorAsSelector(…).String().
 */
export function labelSelectorText(selector: LabelSelector): string {
  const requirements = requirementsOf(selector);
  if (!requirements) throw badRequest('the label selector is not valid');
  return requirements.map(renderRequirement).join(',');
}

/** A plain map selector as text, sorted by key. Models labels.Set.String. */
export function formatLabels(labels: Labels): string {
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key] ?? ''}`)
    .join(',');
}

const EXPRESSION_OPERATORS = new Map<string, LabelOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

function requirementsOf(selector: LabelSelector): LabelRequirement[] | undefined {
  const requirements: LabelRequirement[] = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: '=',
    values: [value],
  }));
  for (const expression of selector.matchExpressions ?? []) {
    const operator = EXPRESSION_OPERATORS.get(expression.operator);
    const values = [...(expression.values ?? [])].sort();
    const needsValues = operator === 'in' || operator === 'notin';
    if (!operator || needsValues !== values.length > 0) return undefined;
    requirements.push({ key: expression.key, operator, values });
  }
  if (requirements.some((requirement) => requirementErrors(requirement).length > 0)) return undefined;
  return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

function renderRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case 'gt':
      return `${key}>${values[0] ?? ''}`;
    case 'lt':
      return `${key}<${values[0] ?? ''}`;
    default:
      return `${key}${operator}${values[0] ?? ''}`;
  }
}

function matches({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = lookup(labels, key);
  switch (operator) {
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    case 'notin':
    case '!=':
      return value === undefined || !values.includes(value);
    case 'gt':
    case 'lt':
      return value !== undefined && comparesAs(operator, value, values[0] ?? '');
    default:
      return value !== undefined && values.includes(value);
  }
}

function comparesAs(operator: 'gt' | 'lt', value: string, bound: string): boolean {
  const left = readInt64(value);
  const right = readInt64(bound);
  if (left === undefined || right === undefined) return false;
  return operator === 'gt' ? left > right : left < right;
}

function lookup(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/**
 * The terms of a `fieldSelector` parameter, sorted as upstream sorts them. Throws StatusError 400 in upstream's words.
 * Which fields a kind knows is for the caller. Models fields.ParseSelector of k8s.io/apimachinery/pkg/fields.
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  if (text.length > MAX_SELECTOR_LENGTH) throw badRequest('field selector is too long');
  return splitTerms(text)
    .sort()
    .filter((term) => term !== '')
    .map((term) => {
      const parts = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
      if (!parts) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
      const [, field = '', operator = '', value = ''] = parts;
      return { field, operator: operator === '!=' ? '!=' : '=', value: unescapeValue(value) };
    });
}

/** Splits at commas that no backslash protects; the backslashes stay. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === ',') {
      terms.push(text.slice(start, i));
      start = i + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function unescapeValue(value: string): string {
  let plain = '';
  const characters = [...value];
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i] ?? '';
    if (character === '\\') {
      const next = characters[++i];
      if (next !== '\\' && next !== ',' && next !== '=') {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next ?? ''}`);
      }
      plain += next;
    } else if (character === ',' || character === '=') {
      throw badRequest(
        `invalid field selector: unescaped character in value: ${character.codePointAt(0) ?? 0}`,
      );
    } else plain += character;
  }
  return plain;
}
