import type { AndOr, Assignment, Command, List, Pipeline, Redirect, Word, WordPart } from './ast.ts';

/** `incomplete`: more input could make it right (an interactive shell asks for it). */
export class ShellSyntaxError extends Error {
  override readonly name = 'ShellSyntaxError';
  readonly incomplete: boolean;
  constructor(message: string, incomplete = false) {
    super(message);
    this.incomplete = incomplete;
  }
}

const MAX_SOURCE = 1024 * 1024;
/** How deep `$(…)`, groups and quotes may nest. */
const MAX_DEPTH = 100;
const RESERVED = new Set([
  'if',
  'then',
  'elif',
  'else',
  'fi',
  'while',
  'until',
  'do',
  'done',
  'for',
  'in',
  'case',
  'esac',
  '{',
  '}',
  '!',
  'function',
]);
const OPERATORS = [
  '&&',
  '||',
  ';;',
  '<<-',
  '<<',
  '>>',
  '>|',
  '<>',
  '<&',
  '>&',
  '&',
  '|',
  ';',
  '<',
  '>',
  '(',
  ')',
  '\n',
];

/** Parses a whole script. Models POSIX.1-2017 Shell Command Language §2.10, without aliases and job names. */
export function parseShell(source: string): List {
  if (source.length > MAX_SOURCE) throw new ShellSyntaxError('script too long');
  return new Parser(source, 0).program();
}

class Parser {
  readonly #source: string;
  readonly #depth: number;
  #at = 0;
  #heredocs: { word: Word; strip: boolean; fill: (body: Word) => void }[] = [];

  constructor(source: string, depth: number) {
    if (depth > MAX_DEPTH) throw new ShellSyntaxError('syntax error: nested too deep');
    this.#source = source;
    this.#depth = depth;
  }

  program(): List {
    const list = this.#list([]);
    this.#blank();
    if (this.#at < this.#source.length) this.#unexpected();
    if (this.#heredocs.length > 0) throw new ShellSyntaxError('syntax error: unexpected end of file', true);
    return list;
  }

  #unexpected(): never {
    this.#blank();
    if (this.#at >= this.#source.length)
      throw new ShellSyntaxError('syntax error: unexpected end of file', true);
    const token = this.#operator() ?? this.#bareWord() ?? this.#source[this.#at] ?? '';
    throw new ShellSyntaxError(`syntax error: unexpected ${token === '\n' ? 'newline' : `"${token}"`}`);
  }

  /** Spaces, line continuations and comments. */
  #blank(): void {
    for (;;) {
      const char = this.#source[this.#at];
      if (char === ' ' || char === '\t' || char === '\r') this.#at += 1;
      else if (char === '\\' && this.#source[this.#at + 1] === '\n') this.#at += 2;
      else if (char === '#') {
        const end = this.#source.indexOf('\n', this.#at);
        this.#at = end < 0 ? this.#source.length : end;
      } else return;
    }
  }

  #operator(): string | undefined {
    return OPERATORS.find((operator) => this.#source.startsWith(operator, this.#at));
  }

  #take(operator: string): boolean {
    this.#blank();
    if (this.#operator() !== operator) return false;
    this.#at += operator.length;
    if (operator === '\n') this.#readHeredocs();
    return true;
  }

  #newlines(): void {
    while (this.#take('\n'));
  }

  /** The unquoted word here, without taking it: reserved words and function names. */
  #bareWord(): string | undefined {
    this.#blank();
    const match = /^[^\s&|;<>()'"\\$`#]+/.exec(this.#source.slice(this.#at, this.#at + 256));
    return match?.[0];
  }

  #reserved(): string | undefined {
    const word = this.#bareWord();
    if (word === undefined || !RESERVED.has(word)) return undefined;
    const next = this.#source[this.#at + word.length];
    return next === undefined || /[\s&|;<>()]/.test(next) ? word : undefined;
  }

  #takeReserved(word: string): boolean {
    if (this.#reserved() !== word) return false;
    this.#at += word.length;
    return true;
  }

  #expect(word: string): void {
    this.#newlines();
    if (!this.#takeReserved(word)) this.#unexpected();
  }

  /** Commands up to one of the reserved words, or `)` or `;;`, which stay. */
  #list(ends: readonly string[]): List {
    const list: AndOr[] = [];
    for (;;) {
      this.#newlines();
      const operator = (this.#blank(), this.#operator());
      if (this.#at >= this.#source.length || operator === ')' || operator === ';;') return list;
      const reserved = this.#reserved();
      if (reserved !== undefined && ends.includes(reserved)) return list;
      const first = this.#pipeline();
      const rest: { operator: '&&' | '||'; pipeline: Pipeline }[] = [];
      for (;;) {
        const joint = this.#take('&&') ? '&&' : this.#take('||') ? '||' : undefined;
        if (!joint) break;
        this.#newlines();
        rest.push({ operator: joint, pipeline: this.#pipeline() });
      }
      const background = this.#take('&');
      list.push({ first, rest, background });
      if (background || this.#take(';') || this.#take('\n')) continue;
      this.#blank();
      const next = this.#operator();
      if (this.#at >= this.#source.length || next === ')' || next === ';;') return list;
      const word = this.#reserved();
      if (word !== undefined && ends.includes(word)) return list;
      this.#unexpected();
    }
  }

  #body(...ends: string[]): List {
    const list = this.#list(ends);
    if (list.length === 0) this.#unexpected();
    return list;
  }

  #pipeline(): Pipeline {
    let negated = false;
    while (this.#takeReserved('!')) negated = !negated;
    const commands = [this.#command()];
    while (this.#take('|')) {
      this.#newlines();
      commands.push(this.#command());
    }
    return { negated, commands };
  }

  #command(): Command {
    this.#blank();
    if (this.#at >= this.#source.length) this.#unexpected();
    const reserved = this.#reserved();
    if (reserved !== undefined || this.#operator() === '(') {
      const compound = this.#compound(reserved);
      if (compound) return { ...compound, redirects: this.#redirects() };
      this.#unexpected();
    }
    const name = this.#bareWord();
    if (name !== undefined && /^[A-Za-z_][\w-]*$/.test(name)) {
      const after = /^[ \t]*\([ \t]*\)/.exec(
        this.#source.slice(this.#at + name.length, this.#at + name.length + 64),
      );
      if (after) {
        this.#at += name.length + after[0].length;
        this.#newlines();
        return { kind: 'function', name, body: this.#command(), redirects: [] };
      }
    }
    return this.#simple();
  }

  #compound(reserved: string | undefined): Command | undefined {
    if (this.#take('(')) {
      const body = this.#list([]);
      if (!this.#take(')')) this.#unexpected();
      return { kind: 'subshell', body, redirects: [] };
    }
    if (reserved === undefined) return undefined;
    const word = reserved;
    if (!['{', 'if', 'while', 'until', 'for', 'case', 'function'].includes(word)) return undefined;
    this.#takeReserved(word);
    if (word === '{') {
      const body = this.#body('}');
      this.#expect('}');
      return { kind: 'group', body, redirects: [] };
    }
    if (word === 'if') return this.#if();
    if (word === 'for') return this.#for();
    if (word === 'case') return this.#case();
    if (word === 'function') {
      const name = this.#bareWord() ?? this.#unexpected();
      this.#at += name.length;
      if (this.#take('(') && !this.#take(')')) this.#unexpected();
      this.#newlines();
      return { kind: 'function', name, body: this.#command(), redirects: [] };
    }
    const condition = this.#body('do');
    this.#expect('do');
    const body = this.#body('done');
    this.#expect('done');
    return { kind: 'loop', until: word === 'until', condition, body, redirects: [] };
  }

  #if(): Command {
    const branches: { condition: List; body: List }[] = [];
    let otherwise: List | undefined;
    do {
      const condition = this.#body('then');
      this.#expect('then');
      branches.push({ condition, body: this.#body('elif', 'else', 'fi') });
      this.#newlines();
    } while (this.#takeReserved('elif'));
    if (this.#takeReserved('else')) otherwise = this.#body('fi');
    this.#expect('fi');
    return { kind: 'if', branches, otherwise, redirects: [] };
  }

  #for(): Command {
    const name = this.#bareWord() ?? this.#unexpected();
    this.#at += name.length;
    let words: Word[] | undefined;
    this.#newlines();
    if (this.#takeReserved('in')) {
      words = [];
      for (let word = this.#word(); word; word = this.#word()) words.push(word);
    }
    if (!this.#take(';')) this.#newlines();
    this.#expect('do');
    const body = this.#body('done');
    this.#expect('done');
    return { kind: 'for', name, words, body, redirects: [] };
  }

  #case(): Command {
    const subject = this.#word() ?? this.#unexpected();
    this.#expect('in');
    const items: { patterns: Word[]; body: List }[] = [];
    for (;;) {
      this.#newlines();
      if (this.#takeReserved('esac')) return { kind: 'case', subject, items, redirects: [] };
      this.#take('(');
      const patterns: Word[] = [];
      do patterns.push(this.#word() ?? this.#unexpected());
      while (this.#take('|'));
      if (!this.#take(')')) this.#unexpected();
      const body = this.#list(['esac']);
      items.push({ patterns, body });
      this.#newlines();
      if (!this.#take(';;') && this.#reserved() !== 'esac') this.#unexpected();
    }
  }

  #redirects(): Redirect[] {
    const redirects: Redirect[] = [];
    for (let one = this.#redirect(); one; one = this.#redirect()) redirects.push(one);
    return redirects;
  }

  #redirect(): Redirect | undefined {
    this.#blank();
    const match = /^(\d?)(<<-|<<|>>|>\||<>|<&|>&|<|>)/.exec(this.#source.slice(this.#at, this.#at + 4));
    if (!match) return undefined;
    this.#at += match[0].length;
    const operator = match[2] ?? '';
    const fd = match[1] ? Number(match[1]) : operator.startsWith('<') ? 0 : 1;
    const target = this.#word() ?? this.#unexpected();
    if (operator === '<<' || operator === '<<-') {
      const redirect: { fd: number; operator: '<<'; target: Word } = { fd, operator: '<<', target: [] };
      this.#heredocs.push({
        word: target,
        strip: operator === '<<-',
        fill: (body) => Object.assign(redirect, { target: body }),
      });
      return redirect;
    }
    return { fd, operator: operator as Redirect['operator'], target };
  }

  #readHeredocs(): void {
    for (const { word, strip, fill } of this.#heredocs.splice(0)) {
      const end = word.map((part) => (part.kind === 'text' ? part.text : '')).join('');
      const literal = word.some((part) => part.quoted);
      const lines: string[] = [];
      for (;;) {
        if (this.#at >= this.#source.length)
          throw new ShellSyntaxError('syntax error: unexpected end of file', true);
        const newline = this.#source.indexOf('\n', this.#at);
        const stop = newline < 0 ? this.#source.length : newline;
        const raw = this.#source.slice(this.#at, stop);
        this.#at = Math.min(this.#source.length, stop + 1);
        const line = strip ? raw.replace(/^\t+/, '') : raw;
        if (line === end) break;
        lines.push(`${line}\n`);
      }
      const text = lines.join('');
      fill(
        literal
          ? [{ kind: 'text', text, quoted: true }]
          : new Parser(text, this.#depth + 1).#quotedText(undefined),
      );
    }
  }

  #simple(): Command {
    const assignments: Assignment[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (;;) {
      const redirect = this.#redirect();
      if (redirect) {
        redirects.push(redirect);
        continue;
      }
      const assigned = words.length === 0 ? this.#assignment() : undefined;
      if (assigned) {
        assignments.push(assigned);
        continue;
      }
      const word = this.#word();
      if (!word) break;
      words.push(word);
    }
    if (assignments.length + words.length + redirects.length === 0) this.#unexpected();
    return { kind: 'simple', assignments, words, redirects };
  }

  #assignment(): Assignment | undefined {
    this.#blank();
    const match = /^([A-Za-z_]\w*)=/.exec(this.#source.slice(this.#at, this.#at + 256));
    if (!match) return undefined;
    this.#at += match[0].length;
    const next = this.#source[this.#at];
    const empty = next === undefined || /[\s&|;<>()]/.test(next);
    return { name: match[1] ?? '', value: empty ? [] : (this.#word() ?? []) };
  }

  #word(): Word | undefined {
    this.#blank();
    const parts = this.#parts((char) => /[\s&|;<>()]/.test(char));
    return parts.length > 0 ? parts : undefined;
  }

  /** Unquoted text with its quotes and expansions, up to a character `ends` names. */
  #parts(ends: (char: string) => boolean): WordPart[] {
    const parts: WordPart[] = [];
    let text = '';
    const flush = (): void => {
      if (text !== '') parts.push({ kind: 'text', text, quoted: false });
      text = '';
    };
    for (;;) {
      const char = this.#source[this.#at];
      if (char === undefined || ends(char)) break;
      if (char === '\\') {
        const next = this.#source[this.#at + 1];
        if (next === undefined) throw new ShellSyntaxError('syntax error: unexpected end of file', true);
        flush();
        if (next !== '\n') parts.push({ kind: 'text', text: next, quoted: true });
        this.#at += 2;
      } else if (char === "'") {
        const end = this.#source.indexOf("'", this.#at + 1);
        if (end < 0) throw new ShellSyntaxError('syntax error: unterminated quoted string', true);
        flush();
        parts.push({ kind: 'text', text: this.#source.slice(this.#at + 1, end), quoted: true });
        this.#at = end + 1;
      } else if (char === '"') {
        this.#at += 1;
        flush();
        const inner = this.#quotedText('"');
        parts.push(...(inner.length > 0 ? inner : [{ kind: 'text', text: '', quoted: true } as const]));
      } else if (char === '$' || char === '`') {
        const expansion = this.#expansion(false);
        if (!expansion) {
          text += char;
          this.#at += 1;
          continue;
        }
        flush();
        parts.push(expansion);
      } else {
        text += char;
        this.#at += 1;
      }
    }
    flush();
    return parts;
  }

  /** The inside of double quotes (which `end` closes), or of a here-document. */
  #quotedText(end: '"' | undefined): WordPart[] {
    const parts: WordPart[] = [];
    let text = '';
    const flush = (): void => {
      if (text !== '') parts.push({ kind: 'text', text, quoted: true });
      text = '';
    };
    for (;;) {
      const char = this.#source[this.#at];
      if (char === undefined) {
        if (end) throw new ShellSyntaxError('syntax error: unterminated quoted string', true);
        break;
      }
      if (char === end) {
        this.#at += 1;
        break;
      }
      if (char === '\\') {
        const next = this.#source[this.#at + 1] ?? '';
        if (next === '\n') text += '';
        else text += '$`\\'.includes(next) || next === end ? next : `\\${next}`;
        this.#at += 2;
      } else if (char === '$' || char === '`') {
        const expansion = this.#expansion(true);
        if (!expansion) {
          text += char;
          this.#at += 1;
          continue;
        }
        flush();
        parts.push(expansion);
      } else {
        text += char;
        this.#at += 1;
      }
    }
    flush();
    return parts;
  }

  #expansion(quoted: boolean): WordPart | undefined {
    if (this.#source[this.#at] === '`') return this.#backquoted(quoted);
    const rest = this.#source.slice(this.#at + 1, this.#at + 260);
    if (rest.startsWith('((')) return this.#arithmetic(quoted);
    if (rest.startsWith('(')) {
      this.#at += 2;
      const inner = new Parser(this.#source.slice(this.#at), this.#depth + 1);
      const body = inner.#list([]);
      if (!inner.#take(')')) inner.#unexpected();
      this.#at += inner.#at;
      return { kind: 'command', body, quoted };
    }
    if (rest.startsWith('{')) return this.#braced(quoted);
    const simple = /^(?:[A-Za-z_]\w*|[0-9@*#?$!-])/.exec(rest);
    if (!simple) return undefined;
    this.#at += 1 + simple[0].length;
    return { kind: 'parameter', name: simple[0], quoted };
  }

  #backquoted(quoted: boolean): WordPart {
    let text = '';
    for (this.#at += 1; this.#source[this.#at] !== '`'; this.#at += 1) {
      const char = this.#source[this.#at];
      if (char === undefined) throw new ShellSyntaxError('syntax error: EOF in backquote substitution', true);
      const next = this.#source[this.#at + 1] ?? '';
      if (char === '\\' && '$`\\'.includes(next)) {
        text += next;
        this.#at += 1;
      } else text += char;
    }
    this.#at += 1;
    return { kind: 'command', body: new Parser(text, this.#depth + 1).program(), quoted };
  }

  #arithmetic(quoted: boolean): WordPart {
    const start = this.#at + 3;
    let depth = 0;
    for (let i = start; i < this.#source.length; i += 1) {
      const char = this.#source[i];
      if (char === '(') depth += 1;
      else if (char === ')' && depth > 0) depth -= 1;
      else if (char === ')' && this.#source[i + 1] === ')') {
        this.#at = i + 2;
        return {
          kind: 'arithmetic',
          expression: new Parser(this.#source.slice(start, i), this.#depth + 1).#quotedText(undefined),
          quoted,
        };
      }
    }
    throw new ShellSyntaxError("syntax error: missing '))'", true);
  }

  #braced(quoted: boolean): WordPart {
    this.#at += 2;
    const head = /^(#?)([A-Za-z_]\w*|\d+|[@*#?$!-])/.exec(this.#source.slice(this.#at, this.#at + 256));
    if (!head) throw new ShellSyntaxError('syntax error: bad substitution');
    // `${#}` is the number of arguments, `${#x}` the length of x.
    this.#at += head[0].length;
    if (this.#source[this.#at] === '}') {
      this.#at += 1;
      return { kind: 'parameter', name: head[2] ?? '', quoted, ...(head[1] ? { length: true } : {}) };
    }
    const operator = /^(:?[-=?+]|%%?|##?|\/\/?|:)/.exec(this.#source.slice(this.#at, this.#at + 2))?.[0];
    if (operator === undefined)
      throw new ShellSyntaxError('syntax error: bad substitution', this.#at >= this.#source.length);
    this.#at += operator.length;
    const argument = this.#parts((char) => char === '}');
    if (this.#source[this.#at] !== '}') throw new ShellSyntaxError("syntax error: missing '}'", true);
    this.#at += 1;
    return { kind: 'parameter', name: head[2] ?? '', quoted, operator, argument };
  }
}
