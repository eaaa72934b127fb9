import { fileErrorText } from '../applets/options.ts';
import { formatPrintf } from '../applets/printf.ts';
import { evaluateTest } from '../applets/test.ts';
import { joinPath } from '../files/path.ts';
import { type Frame, findCommand, type Interpreter, readerAt, writerAt } from './frame.ts';
import {
  ExitShell,
  exportedEnv,
  getVariable,
  Interrupted,
  LeaveLoop,
  ReturnFromFunction,
  ShellError,
  setVariable,
} from './shell-state.ts';

export interface BuiltinCall {
  readonly words: readonly string[];
  readonly frame: Frame;
  readonly interpreter: Interpreter;
}

export type Builtin = (call: BuiltinCall) => Promise<number>;

const out = ({ frame }: BuiltinCall, text: string): Promise<void> => writerAt(frame.files, 1).write(text);
const complain = async ({ frame, words }: BuiltinCall, text: string, status = 1): Promise<number> => {
  await writerAt(frame.files, 2).write(`${frame.state.name}: ${words[0]}: ${text}\n`);
  return status;
};

const numberOr = (text: string | undefined, fallback: number): number =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : fallback;

const changeDirectory: Builtin = async (call) => {
  const { state } = call.frame;
  const host = call.interpreter.host;
  const wanted =
    call.words[1] === '-'
      ? (getVariable(state, 'OLDPWD') ?? '')
      : (call.words[1] ?? getVariable(state, 'HOME') ?? '/');
  const path = joinPath(state.cwd, wanted === '' ? '.' : wanted);
  const stat = await host.files.stat(path);
  if (stat?.type !== 'directory') {
    await writerAt(call.frame.files, 2).write(
      `${state.name}: cd: can't cd to ${wanted}: ${stat ? 'Not a directory' : 'No such file or directory'}\n`,
    );
    return 2;
  }
  setVariable(state, 'OLDPWD', state.cwd, { exported: true });
  state.cwd = path;
  setVariable(state, 'PWD', path, { exported: true });
  if (call.words[1] === '-') await out(call, `${path}\n`);
  return 0;
};

const echo: Builtin = async (call) => {
  let words = call.words.slice(1);
  let newline = true;
  let escapes = false;
  while (/^-[neE]+$/.test(words[0] ?? '')) {
    const flags = words[0] ?? '';
    if (flags.includes('n')) newline = false;
    if (flags.includes('e')) escapes = true;
    if (flags.includes('E')) escapes = false;
    words = words.slice(1);
  }
  const text = words.join(' ');
  if (!escapes) {
    await out(call, text + (newline ? '\n' : ''));
    return 0;
  }
  const { text: shown, stopped } = unescapeEcho(text);
  await out(call, shown + (newline && !stopped ? '\n' : ''));
  return 0;
};

/** `\n`, `\t`, `\0nnn`, `\xhh`; `\c` stops the output. */
function unescapeEcho(text: string): { text: string; stopped: boolean } {
  const simple: Readonly<Record<string, string>> = {
    a: '\x07',
    b: '\b',
    e: '\x1b',
    f: '\f',
    n: '\n',
    r: '\r',
    t: '\t',
    v: '\v',
    '\\': '\\',
  };
  const stop = text.search(/(?<!\\)(?:\\\\)*\\c/);
  const shown = (stop < 0 ? text : text.slice(0, stop)).replace(
    /\\(?:0([0-7]{1,3})|x([0-9a-fA-F]{1,2})|([abefnrtv\\]))/g,
    (_, octal?: string, hex?: string, letter?: string) =>
      octal
        ? String.fromCharCode(Number.parseInt(octal, 8))
        : hex
          ? String.fromCharCode(Number.parseInt(hex, 16))
          : (simple[letter ?? ''] ?? ''),
  );
  return { text: shown, stopped: stop >= 0 };
}

const setOptions: Builtin = async (call) => {
  const { state } = call.frame;
  const words = call.words.slice(1);
  if (words.length === 0) {
    for (const [name, variable] of [...state.variables].sort(([a], [b]) => (a < b ? -1 : 1)))
      await out(call, `${name}='${variable.value.replaceAll("'", "'\"'\"'")}'\n`);
    return 0;
  }
  const apply = (letter: string, on: boolean): void => {
    if (letter === 'e') state.options.exitOnError = on;
    else if (letter === 'u') state.options.unset = on;
    else if (letter === 'x') state.options.trace = on;
    else if (letter === 'f') state.options.noGlob = on;
  };
  const names: Readonly<Record<string, string>> = { errexit: 'e', nounset: 'u', xtrace: 'x', noglob: 'f' };
  while (words.length > 0) {
    const word = words[0] ?? '';
    if (word === '--') {
      state.positional = words.slice(1);
      return 0;
    }
    if (!/^[-+]./.test(word)) break;
    words.shift();
    for (const letter of word.slice(1)) {
      if (letter === 'o') apply(names[words.shift() ?? ''] ?? '', word.startsWith('-'));
      else apply(letter, word.startsWith('-'));
    }
  }
  if (words.length > 0) state.positional = words;
  return 0;
};

const declare =
  (exported: boolean, readonly: boolean): Builtin =>
  async (call) => {
    const { state } = call.frame;
    const words = call.words.slice(1).filter((word) => word !== '-p');
    if (words.length === 0) {
      for (const [name, variable] of [...state.variables].sort(([a], [b]) => (a < b ? -1 : 1))) {
        if ((exported && variable.exported) || (readonly && variable.readonly))
          await out(call, `${call.words[0]} ${name}='${variable.value}'\n`);
      }
      return 0;
    }
    for (const word of words) {
      const equals = word.indexOf('=');
      const name = equals < 0 ? word : word.slice(0, equals);
      if (!/^[A-Za-z_]\w*$/.test(name)) return complain(call, `${word}: bad variable name`, 2);
      if (equals >= 0) setVariable(state, name, word.slice(equals + 1));
      const variable = state.variables.get(name) ?? { value: '', exported: false, readonly: false };
      state.variables.set(name, {
        value: variable.value,
        exported: exported || variable.exported,
        readonly: readonly || variable.readonly,
      });
    }
    return 0;
  };

const read: Builtin = async (call) => {
  const { state, files } = call.frame;
  const words = call.words.slice(1);
  let raw = false;
  while (words[0]?.startsWith('-')) {
    const flag = words.shift() ?? '';
    if (flag.includes('r')) raw = true;
    if (flag === '-p') await writerAt(files, 2).write(words.shift() ?? '');
    else if (flag === '-t' || flag === '-n') words.shift();
  }
  const got = await readerAt(files, 0).readLine();
  if (call.frame.signal.aborted) throw new Interrupted('interrupted');
  let line = got?.line ?? '';
  if (!raw) line = line.replace(/\\(.)/g, '$1');
  const ifs = getVariable(state, 'IFS') ?? ' \t\n';
  const names = words.length > 0 ? words : ['REPLY'];
  const separator = new RegExp(ifs === '' ? '(?!)' : `[${ifs.replace(/[\\\]^-]/g, '\\$&')}]+`);
  let rest = ifs.includes(' ') ? line.trim() : line;
  for (const [index, name] of names.entries()) {
    const match = index < names.length - 1 ? separator.exec(rest) : null;
    setVariable(state, name, match ? rest.slice(0, match.index) : rest);
    rest = match ? rest.slice(match.index + match[0].length) : '';
  }
  return got?.complete ? 0 : 1;
};

const trap: Builtin = async (call) => {
  const { state } = call.frame;
  const words = call.words.slice(1);
  if (words.length === 0) {
    for (const [name, action] of state.traps) await out(call, `trap -- '${action}' ${name}\n`);
    return 0;
  }
  const action = words.length === 1 ? '-' : (words.shift() ?? '-');
  const numbers: Readonly<Record<string, string>> = { 0: 'EXIT', 1: 'HUP', 2: 'INT', 3: 'QUIT', 15: 'TERM' };
  for (const word of words) {
    const name = numbers[word] ?? word.toUpperCase().replace(/^SIG/, '');
    if (action === '-') state.traps.delete(name);
    else state.traps.set(name, action);
  }
  return 0;
};

/** No exit status: a signal with a trap ended the wait. */
const TRAPPED = -1;

const waitJobs: Builtin = async (call) => {
  const { state, signal } = call.frame;
  const ids = call.words.slice(1).map((word) => Number(word.replace('%', '')));
  const jobs = ids.length > 0 ? ids.flatMap((id) => state.jobs.get(id) ?? []) : [...state.jobs.values()];
  let status = 0;
  for (const job of jobs) {
    const trapped = call.interpreter.host.signalled().then(() => TRAPPED);
    status = await Promise.race([job.done, whenAborted(signal), trapped]);
    if (signal.aborted) throw new Interrupted('interrupted');
    if (status === TRAPPED) return 143;
    state.jobs.delete(job.id);
  }
  return ids.length > 0 ? status : 0;
};

function whenAborted(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(130);
    else signal.addEventListener('abort', () => resolve(130), { once: true });
  });
}

const kill: Builtin = async (call) => {
  const { state } = call.frame;
  const words = call.words.slice(1).filter((word) => !word.startsWith('-'));
  if (call.words[1] === '-l') {
    await out(call, 'HUP INT QUIT KILL TERM\n');
    return 0;
  }
  for (const word of words) {
    const job = state.jobs.get(Number(word.replace('%', '')));
    if (job) job.aborter.abort();
    else if (word === '1') return complain(call, "can't kill pid 1: Operation not permitted");
    else return complain(call, `can't kill pid ${word}: No such process`);
  }
  return 0;
};

const source: Builtin = async (call) => {
  const { frame, interpreter } = call;
  const path = call.words[1];
  if (path === undefined) return complain(call, 'filename argument required', 2);
  let text: string;
  try {
    text = Buffer.from(await interpreter.host.files.readFile(joinPath(frame.state.cwd, path))).toString(
      'utf8',
    );
  } catch (error) {
    const why = fileErrorText(error);
    if (why === undefined) throw error;
    throw new ShellError(`.: can't open '${path}': ${why}`);
  }
  const positional = frame.state.positional;
  if (call.words.length > 2) frame.state.positional = call.words.slice(2);
  try {
    return await interpreter.runSource(text, frame);
  } catch (error) {
    if (error instanceof ReturnFromFunction) return error.status;
    throw error;
  } finally {
    frame.state.positional = positional;
  }
};

const describe = async (call: BuiltinCall, name: string, brief: boolean): Promise<number> => {
  const { state } = call.frame;
  if (state.functions.has(name)) await out(call, brief ? `${name}\n` : `${name} is a function\n`);
  else if (builtins[name]) await out(call, brief ? `${name}\n` : `${name} is a shell builtin\n`);
  else {
    const path = findCommand(name, state, call.interpreter.host) ?? (await findProgram(call, name));
    if (path === undefined) {
      if (!brief) await writerAt(call.frame.files, 2).write(`${name}: not found\n`);
      return 127;
    }
    await out(call, brief ? `${path}\n` : `${name} is ${path}\n`);
  }
  return 0;
};

async function findProgram(call: BuiltinCall, name: string): Promise<string | undefined> {
  const { state } = call.frame;
  const { files } = call.interpreter.host;
  for (const directory of (exportedEnv(state).PATH ?? '').split(':')) {
    const path = joinPath(state.cwd, `${directory || '.'}/${name}`);
    const stat = await files.stat(path);
    if (stat?.type === 'file' && (stat.mode & 0o111) !== 0) return path;
  }
  return undefined;
}

const command: Builtin = async (call) => {
  const words = call.words.slice(1);
  if (words[0] === '-v' || words[0] === '-V') return describe(call, words[1] ?? '', words[0] === '-v');
  if (words[0] === '-p') words.shift();
  return words.length === 0 ? 0 : call.interpreter.runWords(words, call.frame, { functions: false });
};

const test: Builtin = async (call) => {
  const { frame, interpreter } = call;
  const words = call.words.slice(1);
  if (call.words[0] === '[' && words.pop() !== ']') return complain(call, 'missing ]', 2);
  const result = await evaluateTest(words, {
    files: interpreter.host.files,
    cwd: frame.state.cwd,
    isTerminal: (fd) => frame.state.interactive && fd < 3,
  });
  if (typeof result === 'boolean') return result ? 0 : 1;
  return complain(call, result.error, 2);
};

/** What the shell does itself. */
export const builtins: Readonly<Record<string, Builtin | undefined>> = {
  ':': async () => 0,
  true: async () => 0,
  false: async () => 1,
  cd: changeDirectory,
  pwd: async (call) => {
    await out(call, `${call.frame.state.cwd}\n`);
    return 0;
  },
  echo,
  printf: async (call) => {
    if (call.words.length < 2) return complain(call, 'usage: printf FORMAT [ARG]...', 2);
    await out(call, formatPrintf(call.words[1] ?? '', call.words.slice(2)));
    return 0;
  },
  test,
  '[': test,
  set: setOptions,
  export: declare(true, false),
  readonly: declare(false, true),
  local: async (call) => {
    const { state } = call.frame;
    const scope = state.locals.at(-1);
    if (!scope) return complain(call, 'not in a function', 2);
    for (const word of call.words.slice(1)) {
      const equals = word.indexOf('=');
      const name = equals < 0 ? word : word.slice(0, equals);
      if (!scope.has(name)) scope.set(name, state.variables.get(name));
      state.variables.set(name, {
        value: equals < 0 ? '' : word.slice(equals + 1),
        exported: false,
        readonly: false,
      });
    }
    return 0;
  },
  unset: async (call) => {
    for (const name of call.words.slice(1).filter((word) => !word.startsWith('-'))) {
      if (call.words[1] === '-f') call.frame.state.functions.delete(name);
      else if (!call.frame.state.variables.delete(name)) call.frame.state.functions.delete(name);
    }
    return 0;
  },
  shift: async (call) => {
    const count = numberOr(call.words[1], 1);
    if (count > call.frame.state.positional.length) return 1;
    call.frame.state.positional = call.frame.state.positional.slice(count);
    return 0;
  },
  exit: async (call) => {
    throw new ExitShell(numberOr(call.words[1], call.frame.state.status) & 255);
  },
  return: async (call) => {
    throw new ReturnFromFunction(numberOr(call.words[1], call.frame.state.status) & 255);
  },
  break: async (call) => {
    throw new LeaveLoop('break', numberOr(call.words[1], 1));
  },
  continue: async (call) => {
    throw new LeaveLoop('continue', numberOr(call.words[1], 1));
  },
  read,
  eval: async (call) => call.interpreter.runSource(call.words.slice(1).join(' '), call.frame),
  exec: async (call) => {
    throw new ExitShell(
      await call.interpreter.runWords(call.words.slice(1), call.frame, { functions: false }),
    );
  },
  '.': source,
  source,
  trap,
  wait: waitJobs,
  kill,
  jobs: async (call) => {
    for (const job of call.frame.state.jobs.values())
      await out(call, `[${job.id}] ${job.finished === undefined ? 'Running' : 'Done'}\n`);
    return 0;
  },
  type: async (call) => {
    let status = 0;
    for (const name of call.words.slice(1)) status = (await describe(call, name, false)) || status;
    return status;
  },
  command,
  umask: async (call) => {
    if (call.words.length === 1) await out(call, '0022\n');
    return 0;
  },
  times: async (call) => {
    await out(call, '0m0.00s 0m0.00s\n0m0.00s 0m0.00s\n');
    return 0;
  },
  alias: async () => 0,
  unalias: async () => 0,
  hash: async () => 0,
  ulimit: async (call) => {
    await out(call, 'unlimited\n');
    return 0;
  },
  getopts: async (call) => getOptions(call),
  help: async (call) => {
    await out(call, `Built-in commands:\n------------------\n\t${Object.keys(builtins).join(' ')}\n`);
    return 0;
  },
};

async function getOptions(call: BuiltinCall): Promise<number> {
  const { state } = call.frame;
  const [, letters = '', name = '', ...given] = call.words;
  const args = given.length > 0 ? given : state.positional;
  const [index = 1, offset = 1] = (getVariable(state, 'OPTIND') ?? '1').split(':').map(Number);
  const arg = args[index - 1];
  if (arg === undefined || !/^-./.test(arg) || arg === '--') {
    setVariable(state, name, '?');
    return 1;
  }
  const letter = arg[offset] ?? '';
  const at = letters.indexOf(letter);
  const takesValue = at >= 0 && letters[at + 1] === ':';
  const last = offset + 1 >= arg.length;
  setVariable(
    state,
    'OPTIND',
    takesValue ? String(last ? index + 2 : index + 1) : last ? String(index + 1) : `${index}:${offset + 1}`,
  );
  if (at < 0 || letter === ':') {
    if (!letters.startsWith(':')) await writerAt(call.frame.files, 2).write(`Illegal option -${letter}\n`);
    setVariable(state, name, '?');
    setVariable(state, 'OPTARG', letter);
    return 0;
  }
  setVariable(state, name, letter);
  if (takesValue) setVariable(state, 'OPTARG', last ? (args[index] ?? '') : arg.slice(offset + 1));
  return 0;
}
