/** Bad arithmetic: busybox's words. */
export class ArithmeticError extends Error {
  override readonly name = 'ArithmeticError';
}

const TOKEN =
  /\s*(?:(0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)|(<<=|>>=|&&|\|\||==|!=|<=|>=|<<|>>|\+\+|--|[-+*/%&|^]=|[-+*/%()<>!~&|^?:=,]))/y;
const LEVELS: readonly (readonly string[])[] = [
  ['||'],
  ['&&'],
  ['|'],
  ['^'],
  ['&'],
  ['==', '!='],
  ['<', '<=', '>', '>='],
  ['<<', '>>'],
  ['+', '-'],
  ['*', '/', '%'],
];
const MAX_TOKENS = 10_000;

/** Evaluates `$((…))`: 64-bit integers, C's operators, assignments. `get` and `set` reach the shell's variables. */
export function evaluateArithmetic(
  text: string,
  variables: { get(name: string): string; set(name: string, value: string): void },
): bigint {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  const source = text.trim();
  if (source === '') return 0n;
  while (TOKEN.lastIndex < source.length) {
    const match = TOKEN.exec(source);
    if (!match || tokens.length > MAX_TOKENS) throw new ArithmeticError('arithmetic syntax error');
    tokens.push(match[0].trim());
  }
  let at = 0;
  const peek = (): string | undefined => tokens[at];
  const accept = (...wanted: string[]): string | undefined => {
    const token = tokens[at];
    if (token === undefined || !wanted.includes(token)) return undefined;
    at += 1;
    return token;
  };
  const wrap = (value: bigint): bigint => BigInt.asIntN(64, value);
  const valueOf = (name: string): bigint => {
    const value = variables.get(name).trim();
    if (value === '') return 0n;
    if (/^-?(0[xX][0-9a-fA-F]+|\d+)$/.test(value)) return parseNumber(value);
    throw new ArithmeticError('arithmetic syntax error');
  };
  const primary = (): bigint => {
    const token = peek();
    if (token === undefined) throw new ArithmeticError('arithmetic syntax error');
    at += 1;
    if (token === '(') {
      const value = comma();
      if (!accept(')')) throw new ArithmeticError('arithmetic syntax error');
      return value;
    }
    if (token === '-') return wrap(-primary());
    if (token === '+') return primary();
    if (token === '!') return primary() === 0n ? 1n : 0n;
    if (token === '~') return wrap(~primary());
    if (token === '++' || token === '--') {
      const name = tokens[at++] ?? '';
      const value = wrap(valueOf(name) + (token === '++' ? 1n : -1n));
      variables.set(name, String(value));
      return value;
    }
    if (/^\d/.test(token)) return parseNumber(token);
    if (!/^[A-Za-z_]/.test(token)) throw new ArithmeticError('arithmetic syntax error');
    const postfix = accept('++', '--');
    const value = valueOf(token);
    if (postfix) variables.set(token, String(wrap(value + (postfix === '++' ? 1n : -1n))));
    return value;
  };
  const binary = (level: number): bigint => {
    const operators = LEVELS[level];
    if (!operators) return primary();
    let left = binary(level + 1);
    for (let operator = accept(...operators); operator; operator = accept(...operators)) {
      left = wrap(apply(operator, left, binary(level + 1)));
    }
    return left;
  };
  const ternary = (): bigint => {
    const condition = binary(0);
    if (!accept('?')) return condition;
    const yes = assignment();
    if (!accept(':')) throw new ArithmeticError('arithmetic syntax error');
    const no = assignment();
    return condition !== 0n ? yes : no;
  };
  const assignment = (): bigint => {
    const name = peek();
    const operator = tokens[at + 1];
    if (
      name === undefined ||
      !/^[A-Za-z_]/.test(name) ||
      operator === undefined ||
      !/^([-+*/%&|^]|<<|>>)?=$/.test(operator)
    )
      return ternary();
    at += 2;
    const right = assignment();
    const value = operator === '=' ? right : wrap(apply(operator.slice(0, -1), valueOf(name), right));
    variables.set(name, String(value));
    return value;
  };
  const comma = (): bigint => {
    let value = assignment();
    while (accept(',')) value = assignment();
    return value;
  };
  const result = comma();
  if (at < tokens.length) throw new ArithmeticError('arithmetic syntax error');
  return result;
}

function parseNumber(text: string): bigint {
  const negative = text.startsWith('-');
  const digits = negative ? text.slice(1) : text;
  const value =
    /^0\d/.test(digits) && /^[0-7]+$/.test(digits) ? BigInt(`0o${digits.slice(1)}`) : BigInt(digits);
  return BigInt.asIntN(64, negative ? -value : value);
}

function apply(operator: string, a: bigint, b: bigint): bigint {
  const truth = (value: boolean): bigint => (value ? 1n : 0n);
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
    case '%':
      if (b === 0n) throw new ArithmeticError('divide by zero');
      return operator === '/' ? a / b : a % b;
    case '<<':
      return a << (b & 63n);
    case '>>':
      return a >> (b & 63n);
    case '<':
      return truth(a < b);
    case '<=':
      return truth(a <= b);
    case '>':
      return truth(a > b);
    case '>=':
      return truth(a >= b);
    case '==':
      return truth(a === b);
    case '!=':
      return truth(a !== b);
    case '&':
      return a & b;
    case '|':
      return a | b;
    case '^':
      return a ^ b;
    case '&&':
      return truth(a !== 0n && b !== 0n);
    default:
      return truth(a !== 0n || b !== 0n);
  }
}
