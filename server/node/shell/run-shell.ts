import { fileErrorText } from '../applets/options.ts';
import { joinPath } from '../files/path.ts';
import { builtins } from './builtins.ts';
import { BrokenPipeError, TooMuchInputError } from './byte-stream.ts';
import { type Frame, type Interpreter, readerAt, writerAt } from './frame.ts';
import { createInterpreter } from './interpreter.ts';
import { createLineEditor } from './line-editor.ts';
import { parseShell, ShellSyntaxError } from './parser.ts';
import type { StartMessage } from './protocol.ts';
import {
  createShellState,
  ExitShell,
  type Files,
  forkState,
  getVariable,
  Interrupted,
  LeaveLoop,
  ReadonlyVariableError,
  ReturnFromFunction,
  ShellError,
  type ShellHost,
  type ShellState,
} from './shell-state.ts';

export interface ShellControl {
  /** Aborted when the whole shell must stop. */
  readonly whole: AbortSignal;
  /** What ^C ends from now on. */
  nextForeground(): AbortSignal;
  trapsChanged(names: readonly string[]): void;
}

interface Invocation {
  command: string | undefined;
  script: string | undefined;
  args: string[];
  interactive: boolean;
  flags: string;
}

function parseInvocation(argv: readonly string[], isTerminal: boolean): Invocation {
  const rest = argv.slice(1);
  const invocation: Invocation = {
    command: undefined,
    script: undefined,
    args: [],
    interactive: false,
    flags: '',
  };
  let wantsCommand = false;
  while (/^[-+]./.test(rest[0] ?? '') && rest[0] !== '--') {
    const word = rest.shift() ?? '';
    if (word === '-o' || word === '--rcfile') rest.shift();
    else if (word.startsWith('--')) continue;
    else
      for (const letter of word.slice(1)) {
        if (letter === 'c') wantsCommand = true;
        else if (letter === 'i') invocation.interactive = true;
        else invocation.flags += letter;
      }
  }
  if (rest[0] === '--') rest.shift();
  if (wantsCommand) invocation.command = rest.shift() ?? '';
  else invocation.script = rest.shift();
  invocation.args = rest;
  if (invocation.command === undefined && invocation.script === undefined && isTerminal)
    invocation.interactive = true;
  return invocation;
}

/** `sh`: with `-c`, a script, commands from standard input, or interactively. Resolves with its status. */
export async function runShell(
  host: ShellHost,
  start: Pick<StartMessage, 'argv' | 'env' | 'cwd' | 'isTerminal'>,
  files: Files,
  control: ShellControl,
): Promise<number> {
  const invocation = parseInvocation(start.argv, start.isTerminal);
  const shellName = (start.argv[0] ?? 'sh').split('/').at(-1) ?? 'sh';
  const name =
    invocation.command !== undefined ? (invocation.args[0] ?? shellName) : (invocation.script ?? shellName);
  const positional = invocation.command !== undefined ? invocation.args.slice(1) : invocation.args;
  const state = createShellState({
    name,
    env: start.env,
    cwd: start.cwd,
    positional,
    interactive: invocation.interactive,
  });
  if (shellName === 'bash' && !start.env.PS1)
    state.variables.set('PS1', { value: '\\u@\\h:\\w\\$ ', exported: false, readonly: false });
  for (const letter of invocation.flags) {
    if (letter === 'e') state.options.exitOnError = true;
    if (letter === 'u') state.options.unset = true;
    if (letter === 'x') state.options.trace = true;
    if (letter === 'f') state.options.noGlob = true;
  }
  watchTraps(state, control);
  const interpreter = createInterpreter(host);
  const own: Files = new Map(files);
  const frame: Frame = { state, files: own, signal: control.nextForeground(), tested: false };
  let status: number;
  if (invocation.command !== undefined)
    status = await contained(() => interpreter.runSource(invocation.command ?? '', frame), frame);
  else if (invocation.script !== undefined) status = await runScript(interpreter, invocation.script, frame);
  else status = await runInput(interpreter, frame, control, start.isTerminal);
  const farewell = state.traps.get('EXIT');
  if (farewell !== undefined) {
    state.traps.delete('EXIT');
    const after = await contained(
      () => interpreter.runSource(farewell, { ...frame, signal: control.whole }),
      frame,
      status,
    );
    return state.status === after ? status : status;
  }
  return status;
}

/** Tells which signals have a trap whenever that changes. */
function watchTraps(state: ShellState, control: ShellControl): void {
  const { traps } = state;
  const report = (): void => control.trapsChanged([...traps.keys()]);
  const set = traps.set.bind(traps);
  const remove = traps.delete.bind(traps);
  traps.set = (name, action) => {
    set(name, action);
    report();
    return traps;
  };
  traps.delete = (name) => {
    const had = remove(name);
    report();
    return had;
  };
}

/** Runs what may leave the shell, and says how it left. */
async function contained(run: () => Promise<number>, frame: Frame, fallback?: number): Promise<number> {
  try {
    const status = await run();
    return fallback ?? status;
  } catch (error) {
    if (error instanceof ExitShell) return error.status;
    if (error instanceof ReturnFromFunction) return error.status;
    if (error instanceof LeaveLoop) return 0;
    if (error instanceof BrokenPipeError) return 141;
    if (error instanceof Interrupted) return 130;
    if (
      error instanceof ShellError ||
      error instanceof ReadonlyVariableError ||
      error instanceof TooMuchInputError
    ) {
      await writerAt(frame.files, 2).write(`${frame.state.name}: ${error.message}\n`);
      return error instanceof ShellError ? error.status : 2;
    }
    throw error;
  }
}

async function runScript(interpreter: Interpreter, script: string, frame: Frame): Promise<number> {
  let text: string;
  try {
    text = Buffer.from(await interpreter.host.files.readFile(joinPath(frame.state.cwd, script))).toString(
      'utf8',
    );
  } catch (error) {
    const why = fileErrorText(error);
    if (why === undefined) throw error;
    await writerAt(frame.files, 2).write(`sh: can't open '${script}': ${why}\n`);
    return 127;
  }
  return contained(() => interpreter.runSource(text, frame), frame);
}

/** Where command lines come from: undefined at the end, `interrupted` after ^C. */
type NextLine = (
  prompt: 'PS1' | 'PS2',
  signal: AbortSignal,
) => Promise<{ line: string; complete: boolean } | 'interrupted' | undefined>;

/** Commands from standard input, as they come; with prompts when interactive. */
async function runInput(
  interpreter: Interpreter,
  frame: Frame,
  control: ShellControl,
  isTerminal: boolean,
): Promise<number> {
  const { state } = frame;
  const nextLine =
    state.interactive && isTerminal ? editedLines(interpreter, frame) : plainLines(interpreter, frame);
  let pending = '';
  for (;;) {
    const signal = control.nextForeground();
    const got = await nextLine(pending === '' ? 'PS1' : 'PS2', signal);
    if (got === 'interrupted') {
      if (control.whole.aborted) return 130;
      pending = '';
      state.status = 130;
      continue;
    }
    if (got === undefined) {
      if (pending !== '') await contained(() => interpreter.runSource(pending, { ...frame, signal }), frame);
      if (state.interactive) await writerAt(frame.files, 2).write('exit\n');
      return state.status;
    }
    pending += `${got.line}\n`;
    if (isIncomplete(pending) && got.complete) continue;
    const source = pending;
    pending = '';
    const end = await runOne(interpreter, source, { ...frame, signal }, control);
    if (end !== undefined) return end;
  }
}

function plainLines(interpreter: Interpreter, frame: Frame): NextLine {
  const input = readerAt(frame.files, 0);
  let line: ReturnType<typeof input.readLine> | undefined;
  return async (which, signal) => {
    if (frame.state.interactive)
      await writerAt(frame.files, 2).write(await prompt(interpreter.host, frame.state, which));
    // A read that was interrupted goes on: what it brings is the next line.
    line ??= input.readLine();
    const got = await Promise.race([line, aborted(signal)]);
    if (got !== 'interrupted') line = undefined;
    return got;
  };
}

function editedLines(interpreter: Interpreter, frame: Frame): NextLine {
  const { host } = interpreter;
  const output = writerAt(frame.files, 2);
  const editor = createLineEditor({
    input: readerAt(frame.files, 0),
    write: (text) => output.write(text),
    complete: (before) => completions(before, frame.state, host),
  });
  return async (which) => {
    await host.setRaw(true);
    const got = await editor.read(await prompt(host, frame.state, which));
    await host.setRaw(false);
    // Only now: who sees the new line may type for the command.
    if (got.kind === 'line') await output.write('\n');
    if (got.kind === 'line') return { line: got.text, complete: true };
    return got.kind === 'interrupt' ? 'interrupted' : undefined;
  };
}

/** Most that Tab offers. */
const MAX_COMPLETIONS = 200;

/** What the last word of a line may become: commands in first place, files elsewhere. */
async function completions(before: string, state: ShellState, host: ShellHost): Promise<string[]> {
  const word = /\S*$/.exec(before)?.[0] ?? '';
  const first = /(^|[;|&(]\s*)\S*$/.test(before) && !word.includes('/');
  if (first) {
    const names = new Set([
      ...Object.keys(builtins),
      ...[...host.applets.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1)),
    ]);
    return [...names]
      .filter((name) => name.startsWith(word))
      .sort()
      .slice(0, MAX_COMPLETIONS);
  }
  const slash = word.lastIndexOf('/');
  const directory = joinPath(state.cwd, slash < 0 ? '.' : word.slice(0, slash + 1));
  if ((await host.files.stat(directory))?.type !== 'directory') return [];
  const found: string[] = [];
  for (const name of (await host.files.readdir(directory))
    .filter((one) => one.startsWith(word.slice(slash + 1)))
    .slice(0, MAX_COMPLETIONS)) {
    const isDirectory = (await host.files.stat(joinPath(directory, name)))?.type === 'directory';
    found.push(`${word.slice(0, slash + 1)}${name}${isDirectory ? '/' : ''}`);
  }
  return found;
}

/** Runs one command line; returns a status when the shell is to end. */
async function runOne(
  interpreter: Interpreter,
  source: string,
  frame: Frame,
  control: ShellControl,
): Promise<number | undefined> {
  try {
    await interpreter.runSource(source, frame);
    return undefined;
  } catch (error) {
    if (error instanceof ExitShell) return error.status;
    if (error instanceof Interrupted && frame.state.interactive && !control.whole.aborted) {
      frame.state.status = 130;
      return undefined;
    }
    const status = await contained(() => Promise.reject(error), frame);
    frame.state.status = status;
    return frame.state.interactive && !(error instanceof Interrupted) ? undefined : status;
  }
}

function isIncomplete(source: string): boolean {
  try {
    parseShell(source);
    return false;
  } catch (error) {
    return error instanceof ShellSyntaxError && error.incomplete;
  }
}

function aborted(signal: AbortSignal): Promise<'interrupted'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('interrupted');
    else signal.addEventListener('abort', () => resolve('interrupted'), { once: true });
  });
}

async function prompt(host: ShellHost, state: ShellState, which: 'PS1' | 'PS2'): Promise<string> {
  const text = getVariable(state, which) ?? '';
  const hostname = getVariable(state, 'HOSTNAME') ?? '';
  const home = getVariable(state, 'HOME');
  const shown = state.cwd === home ? '~' : state.cwd;
  await host.breathe();
  return text.replace(
    /\\([wWhHu$\\])/g,
    (_, letter: string) =>
      ({ w: shown, W: shown.split('/').at(-1) || '/', h: hostname, H: hostname, u: 'root', $: '#' })[
        letter
      ] ?? '\\',
  );
}

/** One command by its words, for applets that run others (`xargs`, `find -exec`, `env`). */
export async function runCommandLine(
  host: ShellHost,
  words: readonly string[],
  state: ShellState,
  files: Files,
  signal: AbortSignal,
): Promise<number> {
  const inner = forkState(state);
  const frame: Frame = { state: inner, files, signal, tested: false };
  const interpreter = createInterpreter(host);
  try {
    return await interpreter.runWords(words, frame, { functions: false });
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return contained(() => Promise.reject(error), frame);
  }
}
