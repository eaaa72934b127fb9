import { globRegex } from '../applets/posix-regex.ts';
import { joinPath } from '../files/path.ts';
import { ArithmeticError, evaluateArithmetic } from './arithmetic.ts';
import type { List, Word, WordPart } from './ast.ts';
import { getVariable, ShellError, type ShellHost, type ShellState, setVariable } from './shell-state.ts';

/** Words one word may become: `*` in a big directory, `$(cat big)`. */
const MAX_FIELDS = 100_000;
const MAX_WORD = 4 * 1024 * 1024;

/** Runs `$(…)` and gives its output. */
export type Substitute = (body: List) => Promise<string>;

export interface Expander {
  /** A word of a command: split into fields, patterns filled in. */
  fields(word: Word): Promise<string[]>;
  /** A word where nothing is split: assignments, redirections, `case`. */
  text(word: Word): Promise<string>;
  /** As `text`, with what was quoted escaped: a pattern. */
  pattern(word: Word): Promise<string>;
}

interface Field {
  text: string;
  /** The same with quoted pattern characters escaped. */
  pattern: string;
  /** Kept even when empty. */
  quoted: boolean;
  magic: boolean;
}

function escapePattern(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}

/** Models POSIX.1-2017 Shell Command Language §2.6. */
export function createExpander(state: ShellState, host: ShellHost, substitute: Substitute): Expander {
  const value = (name: string): string | undefined => {
    switch (name) {
      case '?':
        return String(state.status);
      case '#':
        return String(state.positional.length);
      case '$':
        return '1';
      case '!':
        return state.lastJob ? String(state.lastJob) : '';
      case '-':
        return `${state.options.exitOnError ? 'e' : ''}${state.options.unset ? 'u' : ''}${state.options.trace ? 'x' : ''}${state.interactive ? 'i' : ''}`;
      case '0':
        return state.name;
      case '@':
      case '*':
        return state.positional.length > 0
          ? state.positional.join((getVariable(state, 'IFS') ?? ' ')[0] ?? '')
          : undefined;
      default:
        return /^\d+$/.test(name) ? state.positional[Number(name) - 1] : getVariable(state, name);
    }
  };
  const parameter = async (part: Extract<WordPart, { kind: 'parameter' }>): Promise<string> => {
    const raw = value(part.name);
    if (part.length) return String([...(raw ?? '')].length);
    const { operator } = part;
    if (operator === undefined) {
      if (raw === undefined && state.options.unset && !'@*#'.includes(part.name))
        throw new ShellError(`${part.name}: parameter not set`);
      return raw ?? '';
    }
    const missing = operator.startsWith(':') ? raw === undefined || raw === '' : raw === undefined;
    const argument = part.argument ?? [];
    switch (operator.replace(':', '')) {
      case '-':
        return missing ? text(argument) : (raw ?? '');
      case '=': {
        if (!missing) return raw ?? '';
        const fallback = await text(argument);
        setVariable(state, part.name, fallback);
        return fallback;
      }
      case '?':
        if (missing) throw new ShellError(`${part.name}: ${(await text(argument)) || 'parameter not set'}`);
        return raw ?? '';
      case '+':
        return missing ? '' : text(argument);
      case '':
        return substring(raw ?? '', await text(argument));
      case '/':
      case '//':
        return replace(raw ?? '', operator, argument);
      default:
        return trim(raw ?? '', operator, await pattern(argument));
    }
  };
  const number = (expression: string): number =>
    Number(
      evaluateArithmetic(expression, {
        get: (name) => value(name) ?? '',
        set: (name, next) => setVariable(state, name, next),
      }),
    );
  const substring = (raw: string, argument: string): string => {
    const [start = '0', length] = argument.split(':');
    const from = number(start);
    const begin = from < 0 ? Math.max(0, raw.length + from) : from;
    if (length === undefined) return raw.slice(begin);
    const count = number(length);
    return raw.slice(begin, count < 0 ? raw.length + count : begin + count);
  };
  const replace = async (raw: string, operator: string, argument: Word): Promise<string> => {
    const whole = await pattern(argument);
    const slash = /(?:^|[^\\])\//.exec(whole);
    const cut = slash ? slash.index + slash[0].length - 1 : whole.length;
    const regex = globRegex(whole.slice(0, cut)).source.slice(1, -1);
    const replacement = whole.slice(cut + 1).replace(/\\(.)/g, '$1');
    return raw.replace(new RegExp(regex, operator === '//' ? 'g' : ''), () => replacement);
  };
  const arithmetic = async (expression: Word): Promise<string> => {
    try {
      return String(
        evaluateArithmetic(await text(expression), {
          get: (name) => value(name) ?? '',
          set: (name, next) => setVariable(state, name, next),
        }),
      );
    } catch (error) {
      if (error instanceof ArithmeticError) throw new ShellError(error.message);
      throw error;
    }
  };
  const partText = async (part: WordPart): Promise<string> => {
    switch (part.kind) {
      case 'text':
        return part.text;
      case 'parameter':
        return parameter(part);
      case 'command':
        return (await substitute(part.body)).replace(/\n+$/, '');
      case 'arithmetic':
        return arithmetic(part.expression);
    }
  };
  const tilde = (part: WordPart | undefined): WordPart | undefined => {
    if (part?.kind !== 'text' || part.quoted || !part.text.startsWith('~')) return part;
    const match = /^~(\/|$)/.exec(part.text);
    return match ? { ...part, text: `${value('HOME') ?? '/root'}${part.text.slice(1)}` } : part;
  };
  const withTilde = (word: Word): WordPart[] => {
    const [first, ...rest] = word;
    const opened = tilde(first);
    return opened ? [opened, ...rest] : [];
  };
  const text = async (word: Word): Promise<string> => {
    let out = '';
    for (const part of withTilde(word)) out += await partText(part);
    if (out.length > MAX_WORD) throw new ShellError('out of memory');
    return out;
  };
  const pattern = async (word: Word): Promise<string> => {
    let out = '';
    for (const part of withTilde(word))
      out += part.quoted ? escapePattern(await partText(part)) : await partText(part);
    return out;
  };

  const fields = async (word: Word): Promise<string[]> => {
    const list: Field[] = [];
    let current: Field | undefined;
    const add = (piece: string, quoted: boolean): void => {
      current ??= { text: '', pattern: '', quoted: false, magic: false };
      current.text += piece;
      current.pattern += quoted ? escapePattern(piece) : piece;
      current.quoted ||= quoted;
      current.magic ||= !quoted && /[*?[]/.test(piece);
    };
    const cut = (): void => {
      if (current) list.push(current);
      current = undefined;
      if (list.length > MAX_FIELDS) throw new ShellError('Argument list too long');
    };
    for (const part of withTilde(word)) {
      if (part.kind === 'text') {
        add(part.text, part.quoted);
      } else if (part.kind === 'parameter' && part.name === '@' && !part.operator && !part.length) {
        for (const [index, argument] of state.positional.entries()) {
          if (index > 0) cut();
          if (part.quoted) add(argument, true);
          else split(argument, add, cut);
        }
      } else if (
        part.kind === 'parameter' &&
        part.argument &&
        !part.quoted &&
        /^:?[-+]$/.test(part.operator ?? '') &&
        usesArgument(part)
      ) {
        // ${x:-a "b c"}: the quotes in the argument count.
        for (const [index, field] of (await fields(part.argument)).entries()) {
          if (index > 0) cut();
          add(field, true);
        }
      } else {
        const expanded = await partText(part);
        if (part.quoted) add(expanded, true);
        else split(expanded, add, cut);
      }
    }
    cut();
    const kept = list.filter((field) => field.quoted || field.text !== '');
    const out: string[] = [];
    for (const field of kept) {
      const matches = field.magic && !state.options.noGlob ? await glob(field.pattern, state.cwd, host) : [];
      if (matches.length > 0) out.push(...matches);
      else out.push(field.text);
    }
    return out;
  };
  const usesArgument = (part: Extract<WordPart, { kind: 'parameter' }>): boolean => {
    const raw = value(part.name);
    const missing = part.operator?.startsWith(':') ? raw === undefined || raw === '' : raw === undefined;
    return part.operator?.endsWith('-') ? missing : !missing;
  };
  const split = (expanded: string, add: (text: string, quoted: boolean) => void, cut: () => void): void => {
    const ifs = getVariable(state, 'IFS') ?? ' \t\n';
    if (ifs === '') {
      if (expanded !== '') add(expanded, false);
      return;
    }
    const spaces = [...ifs].filter((char) => /\s/.test(char)).join('');
    const others = [...ifs].filter((char) => !/\s/.test(char)).join('');
    let piece = '';
    let i = 0;
    const flush = (): void => {
      if (piece !== '') add(piece, false);
      piece = '';
    };
    if (spaces.includes(expanded[0] ?? 'x')) cut();
    while (i < expanded.length) {
      const char = expanded[i] ?? '';
      if (spaces.includes(char) || others.includes(char)) {
        flush();
        let separators = 0;
        while (
          i < expanded.length &&
          (spaces.includes(expanded[i] ?? '') || others.includes(expanded[i] ?? ''))
        ) {
          if (others.includes(expanded[i] ?? '')) {
            separators += 1;
            if (separators > 1) add('', true);
            cut();
          }
          i += 1;
        }
        cut();
      } else {
        piece += char;
        i += 1;
      }
    }
    flush();
  };
  return { fields, text, pattern };
}

function trim(raw: string, operator: string, pattern: string): string {
  const regex = globRegex(pattern);
  const longest = operator.length === 2;
  const fromEnd = operator.startsWith('%');
  const lengths = Array.from({ length: raw.length + 1 }, (_, index) => index);
  if (longest) lengths.reverse();
  for (const length of lengths) {
    const piece = fromEnd ? raw.slice(raw.length - length) : raw.slice(0, length);
    if (regex.test(piece)) return fromEnd ? raw.slice(0, raw.length - length) : raw.slice(length);
  }
  return raw;
}

/** The paths a pattern names, sorted; none: empty. */
export async function glob(pattern: string, cwd: string, host: Pick<ShellHost, 'files'>): Promise<string[]> {
  const absolute = pattern.startsWith('/');
  let found: string[] = [absolute ? '/' : ''];
  for (const part of pattern.split('/').filter((piece) => piece !== '')) {
    const next: string[] = [];
    for (const base of found) {
      if (!/[*?[]/.test(part.replace(/\\./g, ''))) {
        const path = `${base}${base === '' || base.endsWith('/') ? '' : '/'}${part.replace(/\\(.)/g, '$1')}`;
        if (await host.files.lstat(joinPath(cwd, path))) next.push(path);
        continue;
      }
      const directory = joinPath(cwd, base === '' ? '.' : base);
      if ((await host.files.stat(directory))?.type !== 'directory') continue;
      const regex = globRegex(part);
      for (const name of await host.files.readdir(directory)) {
        if (name.startsWith('.') && !part.startsWith('.')) continue;
        if (regex.test(name)) next.push(`${base}${base === '' || base.endsWith('/') ? '' : '/'}${name}`);
      }
      if (next.length > MAX_FIELDS) throw new ShellError('Argument list too long');
    }
    found = next;
  }
  return found.sort();
}
