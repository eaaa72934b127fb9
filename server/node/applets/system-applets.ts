import { evaluateArithmetic } from '../shell/arithmetic.ts';
import { type Applet, type AppletContext, AppletError } from './contract.ts';
import { parseOptions } from './options.ts';
import { posixRegex } from './posix-regex.ts';
import { formatPrintf } from './printf.ts';
import { evaluateTest } from './test.ts';

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** What one `write` of `yes` holds. */
const YES_CHUNK = 8192;

async function readText(context: AppletContext, path: string): Promise<string> {
  return (await context.files.stat(path))
    ? Buffer.from(await context.files.readFile(path)).toString('utf8')
    : '';
}

/** `10`, `1.5`, `2m`, `1h`: milliseconds; NaN when it is none. */
export function parseDuration(text: string): number {
  const match = /^(\d*\.?\d+)([smhd]?)$/.exec(text);
  const units: Readonly<Record<string, number>> = {
    '': 1000,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
    d: 86_400_000,
  };
  return match ? Number(match[1]) * (units[match[2] ?? ''] ?? 1000) : Number.NaN;
}

const sleep: Applet = async (context) => {
  const args = context.argv.slice(1);
  if (args.length === 0) throw new AppletError('missing operand');
  let total = 0;
  for (const arg of args) {
    if (arg === 'infinity' || arg === 'inf') total = Number.POSITIVE_INFINITY;
    else if (Number.isNaN(parseDuration(arg))) throw new AppletError(`invalid number '${arg}'`);
    else total += parseDuration(arg);
  }
  if (total === Number.POSITIVE_INFINITY) for (;;) await context.sleep(86_400_000);
  await context.sleep(total);
  return 0;
};

const date: Applet = async (context) => {
  const options = parseOptions(context.argv, 'ud:Is:R', { utc: 'u', date: 'd' });
  const given = options.value('d');
  const parsed =
    given === undefined
      ? await context.now()
      : given.startsWith('@')
        ? Number(given.slice(1)) * 1000
        : Date.parse(given);
  if (Number.isNaN(parsed)) throw new AppletError(`invalid date '${given}'`);
  const time = new Date(parsed);
  const two = (value: number): string => String(value).padStart(2, '0');
  const clock = `${two(time.getUTCHours())}:${two(time.getUTCMinutes())}:${two(time.getUTCSeconds())}`;
  const day = `${time.getUTCFullYear()}-${two(time.getUTCMonth() + 1)}-${two(time.getUTCDate())}`;
  const values: Readonly<Record<string, string>> = {
    Y: String(time.getUTCFullYear()),
    m: two(time.getUTCMonth() + 1),
    d: two(time.getUTCDate()),
    H: two(time.getUTCHours()),
    M: two(time.getUTCMinutes()),
    S: two(time.getUTCSeconds()),
    s: String(Math.floor(parsed / 1000)),
    N: `${String(time.getUTCMilliseconds()).padStart(3, '0')}000000`,
    F: day,
    T: clock,
    a: DAYS[time.getUTCDay()] ?? '',
    b: MONTHS[time.getUTCMonth()] ?? '',
    Z: 'UTC',
    z: '+0000',
    e: String(time.getUTCDate()).padStart(2),
    y: two(time.getUTCFullYear() % 100),
    R: clock.slice(0, 5),
    '%': '%',
    n: '\n',
  };
  const format = options.rest.find((arg) => arg.startsWith('+'))?.slice(1);
  if (format !== undefined)
    await context.stdout.write(
      `${format.replace(/%(.)/g, (all, letter: string) => values[letter] ?? all)}\n`,
    );
  else if (options.has('I')) await context.stdout.write(`${day}\n`);
  else if (options.has('R'))
    await context.stdout.write(`${values.a}, ${values.d} ${values.b} ${values.Y} ${clock} +0000\n`);
  else await context.stdout.write(`${values.a} ${values.b} ${values.e} ${clock} UTC ${values.Y}\n`);
  return 0;
};

const uname: Applet = async (context) => {
  const options = parseOptions(context.argv, 'amnrspvio');
  const host = (await readText(context, '/etc/hostname')).trim();
  const release = (await readText(context, '/proc/sys/kernel/osrelease')).trim();
  const values: [string, string][] = [
    ['s', 'Linux'],
    ['n', host],
    ['r', release],
    ['v', `#${/-(\d+)-/.exec(release)?.[1] ?? 1}-Ubuntu SMP PREEMPT_DYNAMIC`],
    ['m', (await readText(context, '/proc/sys/kernel/arch')).trim()],
    ['o', 'GNU/Linux'],
  ];
  const chosen = values.filter(
    ([flag]) => options.has('a') || options.has(flag) || (flag === 's' && context.argv.length === 1),
  );
  await context.stdout.write(`${chosen.map(([, value]) => value).join(' ')}\n`);
  return 0;
};

const env: Applet = async (context) => {
  const options = parseOptions(context.argv, 'iu:0', {}, { stopAtFirst: true });
  const rest = [...options.rest];
  const values: Record<string, string> = options.has('i') ? {} : { ...context.env };
  for (const name of options.values('u')) delete values[name];
  while (/^[A-Za-z_]\w*=/.test(rest[0] ?? '')) {
    const [name = '', ...value] = (rest.shift() ?? '').split('=');
    values[name] = value.join('=');
  }
  if (rest.length > 0) return context.run(rest);
  for (const [name, value] of Object.entries(values)) await context.stdout.write(`${name}=${value}\n`);
  return 0;
};

const id: Applet = async (context) => {
  const options = parseOptions(context.argv, 'ugGnr');
  if (options.has('u') || options.has('g') || options.has('G'))
    await context.stdout.write(options.has('n') ? 'root\n' : '0\n');
  else await context.stdout.write('uid=0(root) gid=0(root) groups=0(root)\n');
  return 0;
};

const yes: Applet = async (context) => {
  const line = `${context.argv.slice(1).join(' ') || 'y'}\n`;
  const chunk = line.repeat(Math.max(1, Math.floor(YES_CHUNK / line.length)));
  for (;;) {
    await context.stdout.write(chunk);
    await context.breathe();
  }
};

const expr: Applet = async (context) => {
  const words = context.argv.slice(1);
  if (words[1] === ':') {
    const match = new RegExp(`^(?:${posixRegex(words[2] ?? '', { extended: false }).source})`).exec(
      words[0] ?? '',
    );
    const grouped = (words[2] ?? '').includes('\\(');
    const result = grouped ? (match?.[1] ?? '') : String(match?.[0].length ?? 0);
    await context.stdout.write(`${result}\n`);
    return result === '' || result === '0' ? 1 : 0;
  }
  if (words[0] === 'length') {
    await context.stdout.write(`${(words[1] ?? '').length}\n`);
    return 0;
  }
  const compared =
    /^(=|!=|<|>|<=|>=)$/.test(words[1] ?? '') &&
    words.length === 3 &&
    words.some((word, index) => index !== 1 && !/^-?\d+$/.test(word));
  const result = compared
    ? Number(
        words[1] === '='
          ? words[0] === words[2]
          : words[1] === '!='
            ? words[0] !== words[2]
            : words[1]?.startsWith('<')
              ? (words[0] ?? '') < (words[2] ?? '')
              : (words[0] ?? '') > (words[2] ?? ''),
      )
    : evaluateArithmetic(words.map((word) => (word === '=' ? '==' : word)).join(' '), {
        get: () => '0',
        set: () => undefined,
      });
  await context.stdout.write(`${result}\n`);
  return Number(result) === 0 ? 1 : 0;
};

const timeout: Applet = async (context) => {
  const options = parseOptions(context.argv, 's:k:', {}, { stopAtFirst: true });
  const [limit = '', ...command] = options.rest;
  const milliseconds = parseDuration(limit);
  if (Number.isNaN(milliseconds) || command.length === 0)
    throw new AppletError(`invalid time interval '${limit}'`, 125);
  // The command goes on being killed with its shell; its status is given up.
  return Promise.race([context.run(command), context.sleep(milliseconds).then(() => 143)]);
};

const ps: Applet = async (context) => {
  await context.stdout.write('PID   USER     TIME  COMMAND\n');
  const init = (await readText(context, '/proc/1/cmdline')).split('\0').join(' ').trim();
  await context.stdout.write(`    1 root      0:00 ${init}\n`);
  await context.stdout.write(`    ${context.isTerminal ? 8 : 7} root      0:00 ${context.argv.join(' ')}\n`);
  return 0;
};

export const systemApplets: Readonly<Record<string, Applet>> = {
  sleep,
  date,
  uname,
  env,
  id,
  yes,
  expr,
  timeout,
  ps,
  true: async () => 0,
  false: async () => 1,
  printenv: async (context) => {
    const names = context.argv.slice(1);
    if (names.length === 0) return env({ ...context, argv: ['env'] });
    for (const name of names) {
      const value = context.env[name];
      if (value === undefined) return 1;
      await context.stdout.write(`${value}\n`);
    }
    return 0;
  },
  hostname: async (context) => {
    const options = parseOptions(context.argv, 'isfd');
    const name = (await readText(context, '/etc/hostname')).trim();
    const own = (await readText(context, '/etc/hosts'))
      .split('\n')
      .find((line) => line.split(/\s+/).includes(name));
    await context.stdout.write(`${options.has('i') ? (own?.split(/\s+/)[0] ?? '127.0.0.1') : name}\n`);
    return 0;
  },
  whoami: async (context) => {
    await context.stdout.write('root\n');
    return 0;
  },
  echo: async (context) => {
    const words = context.argv.slice(1);
    const bare = words[0] === '-n';
    await context.stdout.write(`${words.slice(bare ? 1 : 0).join(' ')}${bare ? '' : '\n'}`);
    return 0;
  },
  printf: async (context) => {
    await context.stdout.write(formatPrintf(context.argv[1] ?? '', context.argv.slice(2)));
    return 0;
  },
  pwd: async (context) => {
    await context.stdout.write(`${context.cwd}\n`);
    return 0;
  },
  test: async (context) => {
    const result = await evaluateTest(context.argv.slice(1), {
      files: context.files,
      cwd: context.cwd,
      isTerminal: () => context.isTerminal,
    });
    if (typeof result === 'boolean') return result ? 0 : 1;
    throw new AppletError(result.error, 2);
  },
  nproc: async (context) => {
    await context.stdout.write('2\n');
    return 0;
  },
  which: async (context) => {
    let status = 0;
    for (const name of context.argv.slice(1)) {
      const paths = (context.env.PATH ?? '').split(':').map((directory) => `${directory}/${name}`);
      let found = false;
      for (const path of paths) {
        const stat = await context.files.stat(path);
        if (stat?.type !== 'file' || (stat.mode & 0o111) === 0) continue;
        await context.stdout.write(`${path}\n`);
        found = true;
        break;
      }
      if (!found) status = 1;
    }
    return status;
  },
  clear: async (context) => {
    await context.stdout.write('\x1b[H\x1b[J');
    return 0;
  },
  tty: async (context) => {
    await context.stdout.write(context.isTerminal ? '/dev/pts/0\n' : 'not a tty\n');
    return context.isTerminal ? 0 : 1;
  },
  sync: async () => 0,
  df: async (context) => {
    await context.stdout.write(
      'Filesystem           1K-blocks      Used Available Use% Mounted on\noverlay               20134592   2013459  18121133  10% /\n',
    );
    return 0;
  },
};
