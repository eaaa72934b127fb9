import { type ByteReader, createCollector } from '../shell/byte-stream.ts';
import { type Applet, type AppletContext, AppletError } from './contract.ts';
import { openInput } from './open.ts';
import { parseOptions } from './options.ts';
import { at, forEachPath } from './paths.ts';
import { posixRegex } from './posix-regex.ts';
import { unescapeText } from './printf.ts';

type Address = { line: number } | { last: true } | { regex: RegExp };

interface SedCommand {
  from: Address | undefined;
  to: Address | undefined;
  negated: boolean;
  name: string;
  text: string;
  regex: RegExp | undefined;
  replacement: string;
  flags: string;
  active: boolean;
}

const MAX_COMMANDS = 1000;

/** `sed` with s, d, p, q, a, i, c, y, =, n, addresses, `-n -e -i -E`; no labels or hold space. */
export const sed: Applet = async (context) => {
  const options = parseOptions(
    context.argv.map((arg) => (/^-i./.test(arg) ? '-i' : arg)),
    'ne:f:iErs',
    { quiet: 'n', 'regexp-extended': 'E', 'in-place': 'i' },
  );
  const rest = [...options.rest];
  const scripts = options.values('e');
  if (scripts.length === 0) scripts.push(rest.shift() ?? '');
  const commands = parseScript(scripts.join('\n'), options.has('E') || options.has('r'));
  if (!options.has('i')) {
    const readers: ByteReader[] = [];
    const status = await forEachPath(
      context,
      rest.length > 0 ? rest : ['-'],
      async (path) => void readers.push(path === '-' ? context.stdin : await openInput(context, path)),
    );
    await edit(context, readers, commands, options.has('n'));
    return status;
  }
  return forEachPath(context, rest, async (path) => {
    const collected = createCollector();
    const input = await openInput(context, path);
    await edit({ ...context, stdout: collected }, [input], commands, options.has('n'));
    await context.files.writeFile(at(context, path), Buffer.from(collected.text()));
  });
};

function parseScript(script: string, extended: boolean): SedCommand[] {
  const commands: SedCommand[] = [];
  let i = 0;
  const delimited = (delimiter: string): string => {
    let out = '';
    for (; i < script.length && script[i] !== delimiter; i += 1) {
      if (script[i] === '\\' && script[i + 1] === delimiter) i += 1;
      else if (script[i] === '\\') out += script[i++];
      out += script[i] ?? '';
    }
    if (script[i] !== delimiter) throw new AppletError('unterminated expression');
    i += 1;
    return out;
  };
  const address = (): Address | undefined => {
    const number = /^\d+/.exec(script.slice(i));
    if (number) {
      i += number[0].length;
      return { line: Number(number[0]) };
    }
    if (script[i] === '$') {
      i += 1;
      return { last: true };
    }
    if (script[i] !== '/') return undefined;
    i += 1;
    return { regex: posixRegex(delimited('/'), { extended }) };
  };
  const skip = (pattern: RegExp): void => {
    while (i < script.length && pattern.test(script[i] ?? '')) i += 1;
  };
  for (;;) {
    skip(/[\s;]/);
    if (i >= script.length) return commands;
    if (commands.length >= MAX_COMMANDS) throw new AppletError('script too long');
    const from = address();
    let to: Address | undefined;
    if (from && script[i] === ',') {
      i += 1;
      to = address();
    }
    skip(/ /);
    const negated = script[i] === '!';
    if (negated) i += 1;
    const name = script[i++] ?? '';
    const command: SedCommand = {
      from,
      to,
      negated,
      name,
      text: '',
      regex: undefined,
      replacement: '',
      flags: '',
      active: false,
    };
    if (name === 's' || name === 'y') {
      const delimiter = script[i++] ?? '/';
      const pattern = delimited(delimiter);
      command.replacement = delimited(delimiter);
      command.flags = /^[gpiI\d]*/.exec(script.slice(i))?.[0] ?? '';
      i += command.flags.length;
      command.text = pattern;
      if (name === 's')
        command.regex = posixRegex(pattern, { extended, flags: `g${/i/i.test(command.flags) ? 'i' : ''}` });
    } else if ('aic'.includes(name)) {
      const end = script.indexOf('\n', script.startsWith('\\\n', i) ? i + 2 : i);
      command.text = script.slice(i, end < 0 ? undefined : end).replace(/^\\?\s*/, '');
      i = end < 0 ? script.length : end;
    } else if (!'dpqn=D'.includes(name)) throw new AppletError(`unsupported command ${name}`);
    commands.push(command);
  }
}

async function edit(
  context: AppletContext,
  readers: readonly ByteReader[],
  commands: readonly SedCommand[],
  quiet: boolean,
): Promise<void> {
  const lines = (async function* lines() {
    for (const reader of readers)
      for (let got = await reader.readLine(); got; got = await reader.readLine()) yield got;
  })();
  let number = 0;
  let next = await lines.next();
  while (!next.done) {
    const current = next.value;
    next = await lines.next();
    number += 1;
    await context.breathe();
    const end = current.complete || !next.done ? '\n' : '';
    let line = current.line;
    let deleted = false;
    let quit = false;
    let after = '';
    for (const command of commands) {
      if (!selects(command, line, number, next.done === true)) continue;
      if (command.name === 'd' || command.name === 'D') deleted = true;
      else if (command.name === 'c') {
        deleted = true;
        await context.stdout.write(`${command.text}\n`);
      } else if (command.name === 'p') await context.stdout.write(`${line}\n`);
      else if (command.name === '=') await context.stdout.write(`${number}\n`);
      else if (command.name === 'i') await context.stdout.write(`${command.text}\n`);
      else if (command.name === 'a') after += `${command.text}\n`;
      else if (command.name === 'q') quit = true;
      else if (command.name === 'y')
        line = [...line]
          .map((char) =>
            [...command.text].includes(char)
              ? ([...command.replacement][[...command.text].indexOf(char)] ?? char)
              : char,
          )
          .join('');
      else if (command.name === 's') {
        const changed = substitute(line, command);
        if (changed !== undefined) {
          line = changed;
          if (command.flags.includes('p')) await context.stdout.write(`${line}\n`);
        }
      }
      if (deleted || quit) break;
    }
    if (!deleted && !quiet) await context.stdout.write(`${line}${end}`);
    if (after !== '') await context.stdout.write(after);
    if (quit) return;
  }
}

function matches(address: Address, line: string, number: number, last: boolean): boolean {
  return 'line' in address ? address.line === number : 'last' in address ? last : address.regex.test(line);
}

function selects(command: SedCommand, line: string, number: number, last: boolean): boolean {
  const { from, to } = command;
  let selected: boolean;
  if (!from) selected = true;
  else if (!to) selected = matches(from, line, number, last);
  else if (command.active) {
    selected = true;
    command.active = !('line' in to ? number >= to.line : matches(to, line, number, last));
  } else {
    selected = matches(from, line, number, last);
    command.active = selected && !('line' in to && to.line <= number);
  }
  return selected !== command.negated;
}

function substitute(line: string, command: SedCommand): string | undefined {
  const { regex } = command;
  if (!regex) return undefined;
  const which = Number(/\d+/.exec(command.flags)?.[0] ?? 1);
  const every = command.flags.includes('g');
  let count = 0;
  let changed = false;
  const out = line.replace(regex, (...args: unknown[]) => {
    count += 1;
    const all = String(args[0]);
    if (every ? count < which : count !== which) return all;
    changed = true;
    return command.replacement.replace(/\\(\d)|\\(.)|&/gs, (piece, group?: string, char?: string) => {
      if (piece === '&') return all;
      if (group !== undefined) {
        const matched = args[Number(group)];
        return typeof matched === 'string' ? matched : '';
      }
      return char === '&' || char === '/' ? char : unescapeText(`\\${char ?? ''}`);
    });
  });
  return changed ? out : undefined;
}
