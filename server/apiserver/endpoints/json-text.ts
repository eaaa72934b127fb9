/**
 * What Go's decoder says of a JSON text, for bodies that JSON.parse refused and to find members that come twice.
 * Models encoding/json's scanner and sigs.k8s.io/json's strict decoding.
 */
export interface JsonFindings {
  /** In Go's words; undefined for well-formed JSON. */
  readonly syntaxError: string | undefined;
  /** `duplicate field "spec.x"`, in order. */
  readonly duplicates: readonly string[];
}

const DEEPEST = 1000;
const MAX_DUPLICATES = 100;

class GoSyntaxError extends Error {}

export function scanJson(text: string): JsonFindings {
  const duplicates: string[] = [];
  try {
    const end = scanValue({ text, duplicates }, skipSpace(text, 0), '', 0, 'looking for beginning of value');
    const rest = skipSpace(text, end);
    if (rest < text.length) throw invalidCharacter(text, rest, 'after top-level value');
    return { syntaxError: undefined, duplicates };
  } catch (error) {
    if (!(error instanceof GoSyntaxError)) throw error;
    return { syntaxError: error.message, duplicates };
  }
}

interface Scan {
  text: string;
  duplicates: string[];
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at++;
  return at;
}

function invalidCharacter(text: string, at: number, context: string): GoSyntaxError {
  if (at >= text.length) return new GoSyntaxError('unexpected end of JSON input');
  const character = text.charAt(at);
  const shown =
    character === "'" ? "'\\''" : character === '"' ? "'\"'" : `'${JSON.stringify(character).slice(1, -1)}'`;
  return new GoSyntaxError(`invalid character ${shown} ${context}`);
}

function scanValue(scan: Scan, at: number, path: string, depth: number, context: string): number {
  if (depth > DEEPEST) throw new GoSyntaxError('exceeded max depth');
  const { text } = scan;
  switch (text.charAt(at)) {
    case '{':
      return scanObject(scan, at + 1, path, depth);
    case '[':
      return scanArray(scan, at + 1, path, depth);
    case '"':
      return scanString(text, at + 1);
    case 't':
      return scanLiteral(text, at, 'true');
    case 'f':
      return scanLiteral(text, at, 'false');
    case 'n':
      return scanLiteral(text, at, 'null');
    default:
      return scanNumber(text, at, context);
  }
}

function scanObject(scan: Scan, start: number, path: string, depth: number): number {
  const { text } = scan;
  const seen = new Set<string>();
  let at = skipSpace(text, start);
  if (text.charAt(at) === '}') return at + 1;
  for (;;) {
    if (text.charAt(at) !== '"')
      throw invalidCharacter(text, at, 'looking for beginning of object key string');
    const end = scanString(text, at + 1);
    const key = JSON.parse(text.slice(at, end)) as string;
    const member = path ? `${path}.${key}` : key;
    if (seen.has(key) && scan.duplicates.length < MAX_DUPLICATES)
      scan.duplicates.push(`duplicate field ${JSON.stringify(member)}`);
    seen.add(key);
    at = skipSpace(text, end);
    if (text.charAt(at) !== ':') throw invalidCharacter(text, at, 'after object key');
    at = scanValue(scan, skipSpace(text, at + 1), member, depth + 1, 'looking for beginning of value');
    at = skipSpace(text, at);
    if (text.charAt(at) === '}') return at + 1;
    if (text.charAt(at) !== ',') throw invalidCharacter(text, at, 'after object key:value pair');
    at = skipSpace(text, at + 1);
  }
}

function scanArray(scan: Scan, start: number, path: string, depth: number): number {
  const { text } = scan;
  let at = skipSpace(text, start);
  if (text.charAt(at) === ']') return at + 1;
  for (let index = 0; ; index++) {
    at = scanValue(scan, at, `${path}[${index}]`, depth + 1, 'looking for beginning of value');
    at = skipSpace(text, at);
    if (text.charAt(at) === ']') return at + 1;
    if (text.charAt(at) !== ',') throw invalidCharacter(text, at, 'after array element');
    at = skipSpace(text, at + 1);
  }
}

function scanString(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') return at + 1;
    if (character < ' ') throw invalidCharacter(text, at, 'in string literal');
    if (character !== '\\') continue;
    at++;
    const escape = text.charAt(at);
    if (escape === 'u') {
      for (let i = 0; i < 4; i++) {
        at++;
        if (!/[0-9a-fA-F]/.test(text.charAt(at)))
          throw invalidCharacter(text, at, 'in \\u hexadecimal character escape');
      }
    } else if (escape === '' || !'"\\/bfnrt'.includes(escape))
      throw invalidCharacter(text, at, 'in string escape code');
  }
  throw invalidCharacter(text, text.length, '');
}

function scanLiteral(text: string, start: number, literal: string): number {
  for (let i = 1; i < literal.length; i++) {
    if (text.charAt(start + i) !== literal.charAt(i)) {
      throw invalidCharacter(text, start + i, `in literal ${literal} (expecting '${literal.charAt(i)}')`);
    }
  }
  return start + literal.length;
}

function scanNumber(text: string, start: number, context: string): number {
  let at = start;
  const digits = (where: string): void => {
    if (!/[0-9]/.test(text.charAt(at))) throw invalidCharacter(text, at, where);
    while (/[0-9]/.test(text.charAt(at))) at++;
  };
  if (text.charAt(at) === '-') {
    at++;
    if (!/[0-9]/.test(text.charAt(at))) throw invalidCharacter(text, at, 'in numeric literal');
  } else if (!/[0-9]/.test(text.charAt(at))) throw invalidCharacter(text, at, context);
  if (text.charAt(at) === '0') at++;
  else digits(context);
  if (text.charAt(at) === '.') {
    at++;
    digits('after decimal point in numeric literal');
  }
  if (/[eE]/.test(text.charAt(at))) {
    at++;
    if (/[+-]/.test(text.charAt(at))) at++;
    digits('in exponent of numeric literal');
  }
  return at;
}
