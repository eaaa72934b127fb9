import { AppletError } from './contract.ts';

const CLASSES: Readonly<Record<string, string>> = {
  alpha: 'a-zA-Z',
  digit: '0-9',
  alnum: 'a-zA-Z0-9',
  upper: 'A-Z',
  lower: 'a-z',
  space: '\\s',
  blank: ' \\t',
  punct: '!-\\/:-@\\[-`{-~',
  print: ' -~',
  graph: '!-~',
  cntrl: '\\x00-\\x1f\\x7f',
  xdigit: '0-9A-Fa-f',
};
const MAX_PATTERN = 4096;

/** A POSIX basic or extended regular expression as a RegExp. Throws AppletError. Runs in workers only: it may backtrack for ever. */
export function posixRegex(pattern: string, options: { extended: boolean; flags?: string }): RegExp {
  if (pattern.length > MAX_PATTERN) throw new AppletError('regular expression too long', 2);
  try {
    return new RegExp(translate(pattern, options.extended), options.flags ?? '');
  } catch (error) {
    if (error instanceof SyntaxError) throw new AppletError(`bad regex '${pattern}': Invalid regexp`, 2);
    throw error;
  }
}

function translate(pattern: string, extended: boolean): string {
  let out = '';
  for (let i = 0; i < pattern.length; i += 1) {
    const char = pattern[i] ?? '';
    if (char === '[') {
      const end = bracketEnd(pattern, i);
      if (end > i) {
        out += bracket(pattern.slice(i + 1, end));
        i = end;
      } else out += '\\[';
    } else if (char === '\\') {
      i += 1;
      const next = pattern[i] ?? '';
      if (!extended && '(){}|+?'.includes(next)) out += next;
      else if ('<>'.includes(next)) out += '\\b';
      else out += /[A-Za-z0-9]/.test(next) ? `\\${next}` : `\\${next}`;
    } else if (!extended && '(){}|+?'.includes(char)) out += `\\${char}`;
    else if (!extended && char === '*' && (out === '' || out.endsWith('(') || out === '^')) out += '\\*';
    else if (!extended && char === '^' && i > 0 && !out.endsWith('(') && !out.endsWith('|')) out += '\\^';
    else if (!extended && char === '$' && i < pattern.length - 1 && !pattern.startsWith('\\)', i + 1))
      out += '\\$';
    else if (char === '/') out += '\\/';
    else out += char;
  }
  return out;
}

function bracketEnd(pattern: string, start: number): number {
  let i = start + 1;
  if (pattern[i] === '^') i += 1;
  if (pattern[i] === ']') i += 1;
  for (; i < pattern.length; i += 1) {
    if (pattern.startsWith('[:', i)) i = pattern.indexOf(':]', i) + 1 || pattern.length;
    else if (pattern[i] === ']') return i;
  }
  return -1;
}

function bracket(inner: string): string {
  const negated = inner.startsWith('^') || inner.startsWith('!');
  const body = (negated ? inner.slice(1) : inner)
    .replace(/\\/g, '\\\\')
    .replace(/\[:(\w+):\]/g, (_, name: string) => CLASSES[name] ?? '')
    .replace(/\[/g, '\\[')
    .replace(/^\]/, '\\]')
    .replace(/\\\\(?=[sdwtn])/g, '\\')
    .replace(/\^/g, '\\^');
  return `[${negated ? '^' : ''}${body}]`;
}

/** A shell pattern (`*`, `?`, `[…]`) as an anchored RegExp. `path`: `*` stops at slashes. */
export function globRegex(pattern: string, options: { path?: boolean; caseless?: boolean } = {}): RegExp {
  let out = '';
  for (let i = 0; i < pattern.length && i < MAX_PATTERN; i += 1) {
    const char = pattern[i] ?? '';
    if (char === '*') {
      while (pattern[i + 1] === '*') i += 1;
      out += options.path ? '[^/]*' : '[\\s\\S]*';
    } else if (char === '?') out += options.path ? '[^/]' : '[\\s\\S]';
    else if (char === '[') {
      const end = bracketEnd(pattern.replace(/^(.{0,4096})\[!/s, '$1[^'), i);
      if (end > i) {
        out += bracket(pattern.slice(i + 1, end));
        i = end;
      } else out += '\\[';
    } else if (char === '\\' && i + 1 < pattern.length) {
      i += 1;
      out += escapeRegex(pattern[i] ?? '');
    } else out += escapeRegex(char);
  }
  return new RegExp(`^${out}$`, options.caseless ? 'i' : '');
}

export function escapeRegex(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
