import { createHash } from 'node:crypto';
import { type Applet, AppletError } from './contract.ts';
import { grep, sort } from './grep-sort.ts';
import { eachInput, eachLine } from './inputs.ts';
import { openOutput } from './open.ts';
import { parseOptions } from './options.ts';
import { at } from './paths.ts';
import { unescapeText } from './printf.ts';

function byteCount(text: string): number {
  const match = /^(\d+)([bkKmMgG]?)$/.exec(text);
  if (!match) throw new AppletError(`invalid number '${text}'`);
  const units: Readonly<Record<string, number>> = {
    '': 1,
    b: 512,
    k: 1024,
    K: 1024,
    m: 1048576,
    M: 1048576,
    g: 1073741824,
    G: 1073741824,
  };
  return Number(match[1]) * (units[match[2] ?? ''] ?? 1);
}

const head: Applet = async (context) => {
  const options = parseOptions(context.argv, 'n:c:qv', { lines: 'n', bytes: 'c' }, { numbers: 'n' });
  const bytes = options.value('c');
  const many = options.rest.length > 1 && !options.has('q');
  let first = true;
  return eachInput(context, options.rest, async (input, name) => {
    if (many || options.has('v')) await context.stdout.write(`${first ? '' : '\n'}==> ${name} <==\n`);
    first = false;
    if (bytes !== undefined) {
      let left = byteCount(bytes);
      for (
        let chunk = left > 0 ? await input.read() : undefined;
        chunk;
        chunk = left > 0 ? await input.read() : undefined
      ) {
        await context.stdout.write(chunk.length > left ? chunk.subarray(0, left) : chunk);
        left = Math.max(0, left - chunk.length);
      }
      return;
    }
    let left = byteCount(options.value('n') ?? '10');
    if (left > 0)
      await eachLine(context, input, async (line, complete) => {
        await context.stdout.write(complete ? `${line}\n` : line);
        left -= 1;
        return left > 0;
      });
  });
};

const FOLLOW_INTERVAL = 1_000;

const tail: Applet = async (context) => {
  const options = parseOptions(
    context.argv,
    'n:c:qvfFs:',
    { lines: 'n', bytes: 'c', follow: 'f' },
    { numbers: 'n' },
  );
  const bytes = options.value('c');
  const wanted = options.value('n') ?? '10';
  const status = await eachInput(context, options.rest, async (input) => {
    const data = Buffer.from(await input.readAll());
    if (bytes !== undefined) {
      await context.stdout.write(
        bytes.startsWith('+')
          ? data.subarray(byteCount(bytes.slice(1)) - 1)
          : data.subarray(Math.max(0, data.length - byteCount(bytes.replace('-', '')))),
      );
      return;
    }
    const lines = data.toString('utf8').split('\n');
    const ends = lines.at(-1) === '';
    if (ends) lines.pop();
    const chosen = wanted.startsWith('+')
      ? lines.slice(Math.max(0, Number(wanted.slice(1)) - 1))
      : lines.slice(Math.max(0, lines.length - Number(wanted.replace('-', ''))));
    if (chosen.length > 0) await context.stdout.write(chosen.join('\n') + (ends ? '\n' : ''));
  });
  const file = options.rest[0];
  if ((!options.has('f') && !options.has('F')) || file === undefined || file === '-') return status;
  let size = (await context.files.stat(at(context, file)))?.size ?? 0;
  for (;;) {
    await context.sleep(FOLLOW_INTERVAL);
    const now = (await context.files.stat(at(context, file)))?.size ?? 0;
    if (now > size)
      await context.stdout.write((await context.files.readFile(at(context, file))).subarray(size));
    size = now;
  }
};

const wc: Applet = async (context) => {
  const options = parseOptions(context.argv, 'clwmL');
  const all = !['c', 'l', 'w', 'm', 'L'].some((flag) => options.has(flag));
  const total = { lines: 0, words: 0, bytes: 0 };
  const show = (counts: typeof total, name: string): string => {
    const numbers = [
      ...(all || options.has('l') ? [counts.lines] : []),
      ...(all || options.has('w') ? [counts.words] : []),
      ...(all || options.has('c') || options.has('m') ? [counts.bytes] : []),
    ];
    const wide = all || numbers.length > 1;
    return `${numbers.map((number) => (wide ? String(number).padStart(9) : String(number))).join(' ')}${name === '-' ? '' : ` ${name}`}\n`;
  };
  const status = await eachInput(context, options.rest, async (input, name) => {
    const counts = { lines: 0, words: 0, bytes: 0 };
    let inWord = false;
    for (let chunk = await input.read(); chunk; chunk = await input.read()) {
      counts.bytes += chunk.length;
      for (const byte of chunk) {
        if (byte === 10) counts.lines += 1;
        const space = byte === 32 || (byte >= 9 && byte <= 13);
        if (!space && !inWord) counts.words += 1;
        inWord = !space;
      }
      await context.breathe();
    }
    total.lines += counts.lines;
    total.words += counts.words;
    total.bytes += counts.bytes;
    await context.stdout.write(show(counts, name));
  });
  if (options.rest.length > 1) await context.stdout.write(show(total, 'total'));
  return status;
};

const uniq: Applet = async (context) => {
  const options = parseOptions(context.argv, 'cdui');
  let last: string | undefined;
  let count = 0;
  const flush = async (): Promise<void> => {
    if (last === undefined || (options.has('d') && count < 2) || (options.has('u') && count > 1)) return;
    await context.stdout.write(`${options.has('c') ? `${String(count).padStart(7)} ` : ''}${last}\n`);
  };
  const same = (a: string, b: string): boolean =>
    options.has('i') ? a.toLowerCase() === b.toLowerCase() : a === b;
  const status = await eachInput(context, options.rest.slice(0, 1), async (input) =>
    eachLine(context, input, async (line) => {
      if (last !== undefined && same(last, line)) count += 1;
      else {
        await flush();
        last = line;
        count = 1;
      }
    }),
  );
  await flush();
  return status;
};

const cut: Applet = async (context) => {
  const options = parseOptions(context.argv, 'd:f:c:b:s', { delimiter: 'd', fields: 'f' });
  const list = options.value('f') ?? options.value('c') ?? options.value('b');
  if (list === undefined) throw new AppletError('expected a list of bytes, characters, or fields');
  const ranges = list.split(',').map((part) => {
    const [from, to] = part.split('-');
    return part.includes('-')
      ? { from: Number(from || 1), to: to ? Number(to) : Number.POSITIVE_INFINITY }
      : { from: Number(from), to: Number(from) };
  });
  const chosen = (index: number): boolean =>
    ranges.some((range) => index + 1 >= range.from && index + 1 <= range.to);
  const delimiter = options.value('d') ?? '\t';
  return eachInput(context, options.rest, async (input) =>
    eachLine(context, input, async (line) => {
      if (!options.has('f'))
        await context.stdout.write(`${[...line].filter((_, index) => chosen(index)).join('')}\n`);
      else if (line.includes(delimiter))
        await context.stdout.write(
          `${line
            .split(delimiter)
            .filter((_, index) => chosen(index))
            .join(delimiter)}\n`,
        );
      else if (!options.has('s')) await context.stdout.write(`${line}\n`);
    }),
  );
};

const tr: Applet = async (context) => {
  const options = parseOptions(context.argv, 'cCds', {}, { stopAtFirst: true });
  const expand = (text: string): string[] => {
    const named = text.replace(
      /\[:(\w+):\]/g,
      (_, name: string) =>
        ({
          lower: 'a-z',
          upper: 'A-Z',
          digit: '0-9',
          alpha: 'A-Za-z',
          alnum: '0-9A-Za-z',
          space: ' \\t\\n\\r\\f\\v',
          punct: '!-/:-@[-`{-~',
        })[name] ?? '',
    );
    return [
      ...unescapeText(named).replace(/(.)-(.)/gs, (_, a: string, b: string) =>
        Array.from({ length: Math.max(0, b.charCodeAt(0) - a.charCodeAt(0) + 1) }, (_x, index) =>
          String.fromCharCode(a.charCodeAt(0) + index),
        ).join(''),
      ),
    ];
  };
  const from = new Set(expand(options.rest[0] ?? ''));
  const order = expand(options.rest[0] ?? '');
  const to = expand(options.rest[1] ?? '');
  const complement = options.has('c') || options.has('C');
  const isIn = (char: string): boolean => from.has(char) !== complement;
  const squeezed = new Set(options.has('s') ? (to.length > 0 && !options.has('d') ? to : order) : []);
  let last = '';
  for (let chunk = await context.stdin.read(); chunk; chunk = await context.stdin.read()) {
    let out = '';
    for (const char of Buffer.from(chunk).toString('latin1')) {
      if (options.has('d') && isIn(char)) continue;
      const mapped =
        !options.has('d') && to.length > 0 && isIn(char)
          ? (to[complement ? to.length - 1 : Math.min(order.indexOf(char), to.length - 1)] ?? char)
          : char;
      if (squeezed.has(mapped) && last === mapped) continue;
      last = mapped;
      out += mapped;
    }
    await context.stdout.write(Buffer.from(out, 'latin1'));
    await context.breathe();
  }
  return 0;
};

const tee: Applet = async (context) => {
  const options = parseOptions(context.argv, 'ai');
  const outputs = [];
  for (const path of options.rest) outputs.push(await openOutput(context, path, options.has('a')));
  for (let chunk = await context.stdin.read(); chunk; chunk = await context.stdin.read()) {
    await context.stdout.write(chunk);
    for (const output of outputs) await output.write(chunk);
  }
  for (const output of outputs) await output.end();
  return 0;
};

const seq: Applet = async (context) => {
  const options = parseOptions(
    context.argv.map((arg) => (/^-\d/.test(arg) ? ` ${arg}` : arg)),
    'ws:',
  );
  const numbers = options.rest.map(Number);
  const [first, step, last] =
    numbers.length === 1
      ? [1, 1, numbers[0] ?? 0]
      : numbers.length === 2
        ? [numbers[0] ?? 1, 1, numbers[1] ?? 0]
        : [numbers[0] ?? 1, numbers[1] ?? 1, numbers[2] ?? 0];
  if (step === 0 || numbers.some(Number.isNaN) || numbers.length === 0)
    throw new AppletError('invalid number');
  const width = options.has('w') ? Math.max(String(first).length, String(last).length) : 0;
  const separator = options.value('s') ?? '\n';
  let out = '';
  for (let i = 0; step > 0 ? first + i * step <= last : first + i * step >= last; i += 1) {
    out += (out === '' && i === 0 ? '' : separator) + String(first + i * step).padStart(width, '0');
    if (out.length > 16_384) {
      await context.stdout.write(out);
      await context.breathe();
      out = '\0'.slice(1);
    }
  }
  await context.stdout.write(`${out}\n`);
  return 0;
};

const xargs: Applet = async (context) => {
  const options = parseOptions(context.argv, 'n:I:r0tL:P:', {}, { stopAtFirst: true });
  const input = Buffer.from(await context.stdin.readAll()).toString('utf8');
  const replace = options.value('I');
  const items = options.has('0')
    ? input.split('\0').filter((item) => item !== '')
    : replace !== undefined
      ? input.split('\n').filter((item) => item !== '')
      : (input.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((item) => item.replace(/^(['"])(.*)\1$/s, '$2'));
  const command = options.rest.length > 0 ? options.rest : ['echo'];
  const size = replace !== undefined ? 1 : Number(options.value('n') ?? 5000);
  if (items.length === 0 && options.has('r')) return 0;
  let status = 0;
  for (let i = 0; i < Math.max(1, items.length); i += size) {
    await context.breathe();
    const some = items.slice(i, i + size);
    const words =
      replace !== undefined
        ? command.map((word) => word.replaceAll(replace, some[0] ?? ''))
        : [...command, ...some];
    const code = await context.run(words);
    if (code !== 0) status = code === 127 ? 127 : 123;
  }
  return status;
};

const digest =
  (algorithm: string): Applet =>
  async (context) =>
    eachInput(context, parseOptions(context.argv, 'bct').rest, async (input, name) => {
      const hash = createHash(algorithm);
      for (let chunk = await input.read(); chunk; chunk = await input.read()) hash.update(chunk);
      await context.stdout.write(`${hash.digest('hex')}  ${name}\n`);
    });

const base64: Applet = async (context) => {
  const options = parseOptions(context.argv, 'dDw:i', { decode: 'd', wrap: 'w' });
  return eachInput(context, options.rest, async (input) => {
    const data = Buffer.from(await input.readAll());
    if (options.has('d') || options.has('D'))
      return context.stdout.write(Buffer.from(data.toString('latin1'), 'base64'));
    const wrap = Number(options.value('w') ?? 76);
    const text = data.toString('base64');
    return context.stdout.write(wrap > 0 ? text.replace(new RegExp(`.{1,${wrap}}`, 'g'), '$&\n') : text);
  });
};

const mapLines =
  (map: (line: string) => string): Applet =>
  async (context) =>
    eachInput(context, parseOptions(context.argv, '').rest, async (input) =>
      eachLine(context, input, async (line) => context.stdout.write(`${map(line)}\n`)),
    );

const hexdump: Applet = async (context) =>
  eachInput(context, parseOptions(context.argv, 'CxvA:t:').rest, async (input) => {
    const data = Buffer.from(await input.readAll());
    for (let i = 0; i < data.length; i += 16) {
      await context.breathe();
      const row = data.subarray(i, i + 16);
      const hex = [...row]
        .map((byte, index) => `${index === 8 ? ' ' : ''}${byte.toString(16).padStart(2, '0')}`)
        .join(' ');
      await context.stdout.write(
        `${i.toString(16).padStart(8, '0')}  ${hex.padEnd(49)} |${row.toString('latin1').replace(/[^ -~]/g, '.')}|\n`,
      );
    }
    await context.stdout.write(`${data.length.toString(16).padStart(8, '0')}\n`);
  });

export const textApplets: Readonly<Record<string, Applet>> = {
  head,
  tail,
  wc,
  sort,
  uniq,
  cut,
  tr,
  tee,
  seq,
  xargs,
  base64,
  hexdump,
  grep: grep(false, false),
  egrep: grep(true, false),
  fgrep: grep(false, true),
  md5sum: digest('md5'),
  sha1sum: digest('sha1'),
  sha256sum: digest('sha256'),
  rev: mapLines((line) => [...line].reverse().join('')),
  more: async (context) =>
    eachInput(context, parseOptions(context.argv, '').rest, async (input) => {
      for (let chunk = await input.read(); chunk; chunk = await input.read())
        await context.stdout.write(chunk);
    }),
  tac: async (context) =>
    eachInput(context, parseOptions(context.argv, '').rest, async (input) => {
      const lines = Buffer.from(await input.readAll())
        .toString('utf8')
        .replace(/\n$/, '')
        .split('\n');
      await context.stdout.write(`${lines.reverse().join('\n')}\n`);
    }),
  nl: async (context) => {
    let number = 0;
    return eachInput(context, parseOptions(context.argv, 'b:').rest, async (input) =>
      eachLine(context, input, async (line) =>
        context.stdout.write(line === '' ? '\n' : `${String(++number).padStart(6)}\t${line}\n`),
      ),
    );
  },
};
