import { qualifiedNameErrors } from './names.ts';
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
 * The terms of a label selector, sorted by key. Throws StatusError 400 in upstream's words on bad syntax and on keys that
 * cannot be label keys; values are for the caller to check. Models labels.Parser of k8s.io/apimachinery/pkg/labels.
 */
export function parseLabelRequirements(text: string): LabelRequirement[] {
  const parser = createParser(tokenize(text));
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const next = parser.peekWord();
    if (next.type === 'end') break;
    if (next.type !== 'word' && next.type !== '!') {
      throw badRequest(`found '${next.text}', expected: !, identifier, or 'end of string'`);
    }
    requirements.push(parser.requirement());
    const after = parser.takeWord();
    if (after.type === 'end') break;
    if (after.type !== ',') throw badRequest(`found '${after.text}', expected: ',' or 'end of string'`);
    const following = parser.peekWord();
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

interface Parser {
  /** `in` and `notin` are words where a key or a value may stand. */
  peekWord(): Token;
  takeWord(): Token;
  requirement(): LabelRequirement;
}

function createParser(tokens: readonly Token[]): Parser {
  let position = 0;
  const peek = (): Token => tokens[position] ?? END;
  const asWord = (token: Token): Token =>
    token.type === 'in' || token.type === 'notin' ? { ...token, type: 'word' } : token;
  const peekWord = (): Token => asWord(peek());
  const takeWord = (): Token => {
    const token = peekWord();
    position++;
    return token;
  };
  const fail = (message: string): never => {
    throw badRequest(`unable to parse requirement: ${message}`);
  };

  function requirement(): LabelRequirement {
    let negated = false;
    let token = takeWord();
    if (token.type === '!') {
      negated = true;
      token = takeWord();
    }
    if (token.type !== 'word') fail(`found '${token.text}', expected: identifier`);
    const key = token.text;
    const errors = qualifiedNameErrors(key);
    if (errors.length) fail(`<nil>: Invalid value: ${JSON.stringify(key)}: ${errors.join('; ')}`);
    const following = peekWord().type;
    if (negated) return { key, operator: '!', values: [] };
    if (following === 'end' || following === ',') return { key, operator: 'exists', values: [] };
    const sign = peek();
    position++;
    const operator = OPERATORS.get(sign.type);
    if (!operator) return fail(`found '${sign.text}', expected: ${EXPECTED_OPERATORS}`);
    const values = operator === 'in' || operator === 'notin' ? bracketed() : exact();
    return { key, operator, values: [...new Set(values)].sort() };
  }

  function exact(): string[] {
    const next = peekWord();
    if (next.type === 'end' || next.type === ',') return [''];
    position++;
    return next.type === 'word' ? [next.text] : fail(`found '${next.text}', expected: identifier`);
  }

  function bracketed(): string[] {
    const open = takeWord();
    if (open.type !== '(') fail(`found '${open.text}' expected: '('`);
    const first = peekWord();
    if (first.type === ')') {
      position++;
      return [''];
    }
    if (first.type !== 'word' && first.type !== ',') {
      fail(`found '${first.text}', expected: ',', ')' or identifier`);
    }
    const values = list();
    const close = takeWord();
    return close.type === ')' ? values : fail(`found '${close.text}', expected: ')'`);
  }

  /** Up to, not including, the closing bracket; a missing value between commas is the empty one. */
  function list(): string[] {
    const values: string[] = [];
    for (;;) {
      const token = takeWord();
      const next = peekWord();
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

  return { peekWord, takeWord, requirement };
}
