import { joinPath } from '../files/path.ts';
import type { List } from './ast.ts';
import { type ByteReader, type ByteWriter, nullWriter, readerOf } from './byte-stream.ts';
import { exportedEnv, type Files, getVariable, type ShellHost, type ShellState } from './shell-state.ts';

/** A running shell: its state, its open files and what may stop it. */
export interface Frame {
  readonly state: ShellState;
  readonly files: Files;
  readonly signal: AbortSignal;
  /** Inside a condition, where `set -e` does not end the shell. */
  readonly tested: boolean;
}

export interface Interpreter {
  /** Parses and runs a script; resolves with its status. Ways out (ExitShell …) are thrown. */
  runSource(source: string, frame: Frame): Promise<number>;
  runList(list: List, frame: Frame): Promise<number>;
  /** Runs a command by its words, with functions and builtins only where asked. */
  runWords(words: readonly string[], frame: Frame, options: { functions: boolean }): Promise<number>;
  readonly host: ShellHost;
}

export function readerAt(files: Files, fd: number): ByteReader {
  return files.get(fd)?.reader ?? readerOf('');
}

export function writerAt(files: Files, fd: number): ByteWriter {
  return files.get(fd)?.writer ?? nullWriter;
}

/** Where a command is, of those this shell runs itself: along PATH, or by its path. */
export function findCommand(name: string, state: ShellState, host: ShellHost): string | undefined {
  if (name.includes('/')) {
    const path = joinPath(state.cwd, name);
    return host.applets.has(path) ? path : undefined;
  }
  const directories = (exportedEnv(state).PATH ?? getVariable(state, 'PATH') ?? '').split(':');
  return directories
    .map((directory) => joinPath(state.cwd, `${directory || '.'}/${name}`))
    .find((path) => host.applets.has(path));
}
