import { labelValueErrors, qualifiedNameErrors } from './names.ts';
import { badRequest } from './status-error.ts';

/** The operators of labels.Requirement. */
export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/** One term of a label selector, its values sorted and without repetition. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values: readonly string[];
}

interface Token {
  /** `word` for anything that is not an operator or a bracket. */
  readonly type: string;
  readonly text: string;
}

const SYMBOLS = new Set([')', ',', '!', '==', '=', '>', '<', '!=', '(']);
const END: Token = { type: 'end', text: '' };
const OPERATORS = new Map<string, LabelOperator>([
  ['in', 'in'],
  ['notin', 'notin'],
  ['=', '='],
  ['==', '=='],
  ['!=', '!='],
  ['>', 'gt'],
  ['<', 'lt'],
]);
const EXPECTED_OPERATORS = 'in, notin, =, ==, !=, gt, lt';

/**
 * The terms of a label selector, sorted by key. Throws StatusError 400 in upstream's words on bad syntax and on keys
 * and values that labels cannot have. Models labels.Parser of k8s.io/apimachinery/pkg/labels.
 */
export function parseLabelRequirements(text: string): LabelRequirement[] {
  const cursor: Cursor = { tokens: tokenize(text), at: 0 };
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const next = peekWord(cursor);
    if (next.type === 'end') break;
    if (next.type !== 'word' && next.type !== '!') {
      throw badRequest(`found '${next.text}', expected: !, identifier, or 'end of string'`);
    }
    requirements.push(readRequirement(cursor));
    const after = takeWord(cursor);
    if (after.type === 'end') break;
    if (after.type !== ',') throw badRequest(`found '${after.text}', expected: ',' or 'end of string'`);
    const following = peekWord(cursor);
    if (following.type !== 'word' && following.type !== '!') {
      throw badRequest(`found '${following.text}', expected: identifier after ','`);
    }
  }
  return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const pattern = /[ \t\r\n]*(?:([=!(),><]+)|([^=!(),>< \t\r\n]+))/gy;
  const end = text.replace(/[ \t\r\n]+$/, '').length;
  while (pattern.lastIndex < end) {
    const [, symbols, word] = pattern.exec(text) ?? [];
    if (word !== undefined)
      tokens.push({ type: word === 'in' || word === 'notin' ? word : 'word', text: word });
    else if (symbols !== undefined) pushSymbols(tokens, symbols);
  }
  tokens.push(END);
  return tokens;
}

/** Cuts a run of symbols into the longest operators there are. */
function pushSymbols(tokens: Token[], symbols: string): void {
  for (let i = 0; i < symbols.length; ) {
    const two = symbols.slice(i, i + 2);
    const symbol = SYMBOLS.has(two) ? two : symbols.slice(i, i + 1);
    tokens.push({ type: symbol, text: symbol });
    i += symbol.length;
  }
}

/** The tokens and where reading them has come to. */
interface Cursor {
  readonly tokens: readonly Token[];
  at: number;
}

function peek(cursor: Cursor): Token {
  return cursor.tokens[cursor.at] ?? END;
}

/** The next token where a key or a value may stand: `in` and `notin` are words there. */
function peekWord(cursor: Cursor): Token {
  const token = peek(cursor);
  return token.type === 'in' || token.type === 'notin' ? { ...token, type: 'word' } : token;
}

function takeWord(cursor: Cursor): Token {
  const token = peekWord(cursor);
  cursor.at++;
  return token;
}

function fail(message: string): never {
  throw badRequest(`unable to parse requirement: ${message}`);
}

function readRequirement(cursor: Cursor): LabelRequirement {
  let token = takeWord(cursor);
  const negated = token.type === '!';
  if (negated) token = takeWord(cursor);
  if (token.type !== 'word') fail(`found '${token.text}', expected: identifier`);
  const key = token.text;
  const errors = qualifiedNameErrors(key);
  if (errors.length) fail(`<nil>: Invalid value: ${JSON.stringify(key)}: ${errors.join('; ')}`);
  if (negated) return { key, operator: '!', values: [] };
  const following = peekWord(cursor).type;
  if (following === 'end' || following === ',') return { key, operator: 'exists', values: [] };
  const sign = peek(cursor);
  cursor.at++;
  const operator = OPERATORS.get(sign.type);
  if (!operator) return fail(`found '${sign.text}', expected: ${EXPECTED_OPERATORS}`);
  const values = operator === 'in' || operator === 'notin' ? readBracketed(cursor) : readExact(cursor);
  return checked({ key, operator, values: [...new Set(values)].sort() });
}

function readExact(cursor: Cursor): string[] {
  const next = peekWord(cursor);
  if (next.type === 'end' || next.type === ',') return [''];
  cursor.at++;
  return next.type === 'word' ? [next.text] : fail(`found '${next.text}', expected: identifier`);
}

function readBracketed(cursor: Cursor): string[] {
  const open = takeWord(cursor);
  if (open.type !== '(') fail(`found '${open.text}' expected: '('`);
  const first = peekWord(cursor);
  if (first.type === ')') {
    cursor.at++;
    return [''];
  }
  if (first.type !== 'word' && first.type !== ',')
    fail(`found '${first.text}', expected: ',', ')' or identifier`);
  const values = readList(cursor);
  const close = takeWord(cursor);
  return close.type === ')' ? values : fail(`found '${close.text}', expected: ')'`);
}

/** Up to, not including, the closing bracket; a missing value between commas is the empty one. */
function readList(cursor: Cursor): string[] {
  const values: string[] = [];
  for (;;) {
    const token = takeWord(cursor);
    const next = peekWord(cursor);
    if (token.type === 'word') {
      values.push(token.text);
      if (next.type === ')') return values;
      if (next.type !== ',') fail(`found '${next.text}', expected: ',' or ')'`);
    } else if (token.type === ',') {
      if (values.length === 0 || next.type === ',' || next.type === ')') values.push('');
      if (next.type === ')') return values;
    } else fail(`found '${token.text}', expected: ',', or identifier`);
  }
}

/** A decimal that fits 64 bits, or undefined. */
export function readInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d{1,30}$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** Upstream's complaints about a term, as its field errors word them. */
export function requirementErrors({ key, operator, values }: LabelRequirement): string[] {
  const errors: string[] = [];
  const keyErrors = qualifiedNameErrors(key);
  if (keyErrors.length) errors.push(`key: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`);
  values.forEach((value, index) => {
    if ((operator === 'gt' || operator === 'lt') && readInt64(value) === undefined) {
      const rule = "for 'Gt', 'Lt' operators, the value must be an integer";
      errors.push(`values[${index}]: Invalid value: ${JSON.stringify(value)}: ${rule}`);
    }
    const valueErrors = labelValueErrors(value);
    if (valueErrors.length === 0) return;
    errors.push(
      `values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: ${valueErrors.join('; ')}`,
    );
  });
  return errors;
}

/** The term, when nothing is wrong with it. */
function checked(requirement: LabelRequirement): LabelRequirement {
  const errors = [...new Set(requirementErrors(requirement))];
  if (errors.length) fail(errors.length === 1 ? (errors[0] ?? '') : `[${errors.join(', ')}]`);
  return requirement;
}
