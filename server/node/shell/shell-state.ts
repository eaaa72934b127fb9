import type { AsyncFiles } from '../applets/contract.ts';
import type { Command } from './ast.ts';
import type { ByteReader, ByteWriter } from './byte-stream.ts';

/** One open file of a shell command. */
export interface OpenFile {
  readonly reader?: ByteReader;
  readonly writer?: ByteWriter;
}

export type Files = ReadonlyMap<number, OpenFile>;

/** What the interpreter needs of the world around it. */
export interface ShellHost {
  readonly files: AsyncFiles;
  /** The container's small programs: path to applet name. */
  readonly applets: ReadonlyMap<string, string>;
  /** Runs an applet in place. */
  runApplet(
    name: string,
    argv: readonly string[],
    shell: ShellState,
    open: Files,
    signal: AbortSignal,
  ): Promise<number>;
  /** Runs any other program of the container; undefined when there is none of that name. */
  runProgram(
    argv: readonly string[],
    shell: ShellState,
    open: Files,
    signal: AbortSignal,
  ): Promise<number | undefined>;
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
  now(): Promise<number>;
  /** Lets signals and output through; cheap to call often. */
  breathe(): Promise<void>;
  /** Signals with a trap that came since the last call. */
  takeSignals(): string[];
  /** Resolves at the next such signal. */
  signalled(): Promise<void>;
  /** Whether the terminal gives keys (true) or lines; resolves when it does. */
  setRaw(raw: boolean): Promise<void>;
  readonly size: { width: number; height: number };
}

export interface Variable {
  value: string;
  exported: boolean;
  readonly: boolean;
}

export interface Job {
  readonly id: number;
  readonly done: Promise<number>;
  readonly aborter: AbortController;
  finished: number | undefined;
}

/** All that a subshell copies. */
export interface ShellState {
  readonly name: string;
  readonly variables: Map<string, Variable>;
  readonly functions: Map<string, Command>;
  readonly traps: Map<string, string>;
  positional: string[];
  cwd: string;
  status: number;
  readonly options: { exitOnError: boolean; unset: boolean; trace: boolean; noGlob: boolean };
  readonly jobs: Map<number, Job>;
  lastJob: number;
  locals: Map<string, Variable | undefined>[];
  depth: number;
  readonly interactive: boolean;
}

/** Functions and sourced scripts calling each other. */
export const MAX_CALL_DEPTH = 200;
export const MAX_JOBS = 32;

export function createShellState(options: {
  name: string;
  env: Readonly<Record<string, string>>;
  cwd: string;
  positional: readonly string[];
  interactive: boolean;
}): ShellState {
  const variables = new Map<string, Variable>();
  for (const [name, value] of Object.entries(options.env))
    variables.set(name, { value, exported: true, readonly: false });
  const preset = (name: string, value: string): void => {
    if (!variables.has(name)) variables.set(name, { value, exported: false, readonly: false });
  };
  variables.set('PWD', { value: options.cwd, exported: true, readonly: false });
  preset('IFS', ' \t\n');
  preset('OPTIND', '1');
  preset('PS1', options.interactive ? '\\w \\$ ' : '$ ');
  preset('PS2', '> ');
  preset('PS4', '+ ');
  preset('PPID', '0');
  return {
    name: options.name,
    variables,
    functions: new Map(),
    traps: new Map(),
    positional: [...options.positional],
    cwd: options.cwd,
    status: 0,
    options: { exitOnError: false, unset: false, trace: false, noGlob: false },
    jobs: new Map(),
    lastJob: 0,
    locals: [],
    depth: 0,
    interactive: options.interactive,
  };
}

/** What `( … )`, pipes and `$(…)` start with. */
export function forkState(state: ShellState): ShellState {
  return {
    ...state,
    variables: new Map([...state.variables].map(([name, variable]) => [name, { ...variable }])),
    functions: new Map(state.functions),
    traps: new Map(),
    positional: [...state.positional],
    options: { ...state.options },
    jobs: new Map(),
    locals: [],
    interactive: false,
  };
}

export function getVariable(state: ShellState, name: string): string | undefined {
  return state.variables.get(name)?.value;
}

/** A variable that may not be changed. */
export class ReadonlyVariableError extends Error {
  override readonly name = 'ReadonlyVariableError';
}

export function setVariable(
  state: ShellState,
  name: string,
  value: string,
  options: { exported?: boolean } = {},
): void {
  const existing = state.variables.get(name);
  if (existing?.readonly) throw new ReadonlyVariableError(`${name}: is read only`);
  state.variables.set(name, {
    value,
    exported: options.exported ?? existing?.exported ?? false,
    readonly: false,
  });
}

/** The environment of a command started now. */
export function exportedEnv(state: ShellState): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, variable] of state.variables) if (variable.exported) env[name] = variable.value;
  return env;
}

/** Not errors but ways out. */
export class ExitShell extends Error {
  override readonly name = 'ExitShell';
  readonly status: number;
  constructor(status: number) {
    super('exit');
    this.status = status;
  }
}
export class ReturnFromFunction extends Error {
  override readonly name = 'ReturnFromFunction';
  readonly status: number;
  constructor(status: number) {
    super('return');
    this.status = status;
  }
}
export class LeaveLoop extends Error {
  override readonly name = 'LeaveLoop';
  readonly how: 'break' | 'continue';
  levels: number;
  constructor(how: 'break' | 'continue', levels: number) {
    super(how);
    this.how = how;
    this.levels = levels;
  }
}
/** ^C, or the job was killed. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
/** A mistake that ends a script: unset variable, bad substitution, read-only variable. */
export class ShellError extends Error {
  override readonly name = 'ShellError';
  readonly status: number;
  constructor(message: string, status = 2) {
    super(message);
    this.status = status;
  }
}
