import { type Applet, type AppletContext } from './contract.ts';
import { eachInput, eachLine } from './inputs.ts';
import { parseOptions } from './options.ts';
import { at } from './paths.ts';
import { escapeRegex, posixRegex } from './posix-regex.ts';

const MAX_CONTEXT = 10_000;

/** grep, egrep, fgrep. */
export const grep =
  (extended: boolean, fixed: boolean): Applet =>
  async (context) => {
    const options = parseOptions(context.argv, 'HhnqvsorilLcwxEFe:f:m:A:B:C:', {
      color: 'h',
      quiet: 'q',
      'ignore-case': 'i',
      count: 'c',
      'invert-match': 'v',
      recursive: 'r',
      'line-number': 'n',
      only: 'o',
    });
    const rest = [...options.rest];
    const patterns = options.values('e').length > 0 ? options.values('e') : (rest.shift() ?? '').split('\n');
    const literal = fixed || options.has('F');
    const regexes = patterns.map((pattern) => {
      const source = literal
        ? escapeRegex(pattern)
        : posixRegex(pattern, { extended: extended || options.has('E') }).source;
      const bounded = options.has('x')
        ? `^(?:${source})$`
        : options.has('w')
          ? `(?<!\\w)(?:${source})(?!\\w)`
          : source;
      return new RegExp(bounded, options.has('i') ? 'gi' : 'g');
    });
    const files = options.has('r') ? await expandTree(context, rest.length > 0 ? rest : ['.']) : rest;
    const named = !options.has('h') && (options.has('H') || files.length > 1 || options.has('r'));
    const before = Math.min(MAX_CONTEXT, Number(options.value('B') ?? options.value('C') ?? 0));
    const after = Math.min(MAX_CONTEXT, Number(options.value('A') ?? options.value('C') ?? 0));
    const most = Number(options.value('m') ?? Number.POSITIVE_INFINITY);
    let matched = false;
    const status = await eachInput(context, files, async (input, name) => {
      const label = named ? (name === '-' ? '(standard input)' : name) : '';
      const prefix = (number: number, mark: string): string =>
        `${label === '' ? '' : `${label}${mark}`}${options.has('n') ? `${number}${mark}` : ''}`;
      const waiting: { number: number; line: string }[] = [];
      let number = 0;
      let count = 0;
      let trailing = 0;
      await eachLine(context, input, async (line) => {
        number += 1;
        const hit = regexes.some((regex) => ((regex.lastIndex = 0), regex.test(line))) !== options.has('v');
        if (hit) {
          count += 1;
          matched = true;
          if (options.has('q') || options.has('l') || options.has('L')) return false;
          if (!options.has('c')) {
            for (const one of waiting.splice(0))
              await context.stdout.write(`${prefix(one.number, '-')}${one.line}\n`);
            if (options.has('o'))
              for (const regex of regexes)
                for (const match of line.matchAll(regex))
                  await context.stdout.write(`${prefix(number, ':')}${match[0]}\n`);
            else await context.stdout.write(`${prefix(number, ':')}${line}\n`);
          }
          trailing = after;
          return count < most;
        }
        if (trailing > 0 && !options.has('c')) {
          trailing -= 1;
          await context.stdout.write(`${prefix(number, '-')}${line}\n`);
        } else if (before > 0) {
          waiting.push({ number, line });
          if (waiting.length > before) waiting.shift();
        }
        return true;
      });
      if (options.has('c')) await context.stdout.write(`${label === '' ? '' : `${label}:`}${count}\n`);
      if ((options.has('l') && count > 0) || (options.has('L') && count === 0))
        await context.stdout.write(`${name}\n`);
    });
    return status !== 0 && !options.has('s') ? 2 : matched ? 0 : 1;
  };

async function expandTree(context: AppletContext, paths: readonly string[]): Promise<string[]> {
  const out: string[] = [];
  const visit = async (path: string, depth: number): Promise<void> => {
    await context.breathe();
    const found = await context.files.stat(at(context, path));
    if (found?.type !== 'directory' || depth > 64) {
      out.push(path);
      return;
    }
    for (const name of await context.files.readdir(at(context, path)))
      await visit(`${path.replace(/\/$/, '')}/${name}`, depth + 1);
  };
  for (const path of paths) await visit(path, 0);
  return out;
}

export const sort: Applet = async (context) => {
  const options = parseOptions(context.argv, 'nrugfbck:t:o:hVszM');
  const lines: string[] = [];
  const status = await eachInput(context, options.rest, async (input) =>
    eachLine(context, input, async (line) => void lines.push(line)),
  );
  const separator = options.value('t');
  const keys = options.values('k').map((key) => {
    const match = /^(\d+)(?:\.\d+)?([nrfbhV]*)(?:,(\d+)(?:\.\d+)?([nrfbhV]*))?$/.exec(key);
    return {
      from: Number(match?.[1] ?? 1),
      to: match?.[3] ? Number(match[3]) : undefined,
      flags: `${match?.[2] ?? ''}${match?.[4] ?? ''}`,
    };
  });
  const field = (line: string, from: number, to: number | undefined): string => {
    const fields = separator !== undefined ? line.split(separator) : line.trim().split(/\s+/);
    return fields.slice(from - 1, to).join(separator ?? ' ');
  };
  const sizes: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const numberOf = (text: string, human: boolean): number => {
    const match = /^\s*(-?\d*\.?\d+)([KMGT]?)/.exec(text);
    return match ? Number(match[1]) * (human ? (sizes[match[2] ?? ''] ?? 1) : 1) : 0;
  };
  const compareText = (a: string, b: string, flags: string): number => {
    if (/[nhg]/.test(flags)) return numberOf(a, flags.includes('h')) - numberOf(b, flags.includes('h'));
    const [x, y] = flags.includes('f') ? [a.toUpperCase(), b.toUpperCase()] : [a, b];
    if (flags.includes('V')) return x.localeCompare(y, 'en', { numeric: true });
    return x < y ? -1 : x > y ? 1 : 0;
  };
  const general = ['n', 'h', 'g', 'f', 'V'].filter((flag) => options.has(flag)).join('');
  const compare = (a: string, b: string): number => {
    for (const key of keys) {
      const result = compareText(
        field(a, key.from, key.to),
        field(b, key.from, key.to),
        key.flags || general,
      );
      if (result !== 0) return key.flags.includes('r') ? -result : result;
    }
    return keys.length > 0 ? 0 : compareText(a, b, general);
  };
  lines.sort(compare);
  if (options.has('r')) lines.reverse();
  const unique = options.has('u')
    ? lines.filter((line, index) => index === 0 || compare(lines[index - 1] ?? '', line) !== 0)
    : lines;
  const target = options.value('o');
  const text = unique.map((line) => `${line}\n`).join('');
  if (target === undefined) await context.stdout.write(text);
  else await context.files.writeFile(at(context, target), Buffer.from(text));
  return status;
};
