/** What a worker is told to run. */
export interface StartMessage {
  kind: 'start';
  /** `shell`: argv[0] is a shell; `applet`: argv is one applet. */
  mode: 'shell' | 'applet';
  applet: string;
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  /** path → applet name */
  applets: readonly (readonly [string, string])[];
  isTerminal: boolean;
  isInit: boolean;
  size: { width: number; height: number };
}

export type ToWorker =
  | StartMessage
  | { kind: 'stdin'; data: Uint8Array | undefined }
  | { kind: 'written'; bytes: number; broken: boolean }
  | { kind: 'answer'; id: number; value?: unknown; error?: { code: string; path: string } }
  | { kind: 'signal'; signal: string }
  | { kind: 'size'; width: number; height: number }
  | { kind: 'child-output'; id: number; fd: 1 | 2; data: Uint8Array }
  | { kind: 'child-wants-input'; id: number };

export type FromWorker =
  | { kind: 'read' }
  | { kind: 'write'; fd: 1 | 2; data: Uint8Array }
  | { kind: 'call'; id: number; operation: CallOperation; args: readonly unknown[] }
  | { kind: 'cancel'; id: number }
  | { kind: 'child-input'; id: number; data: Uint8Array | undefined }
  | { kind: 'child-output-taken'; id: number; fd: 1 | 2; broken: boolean }
  | { kind: 'exit'; code: number };

/** `fs.*` are AsyncFiles' methods; `spawn` resolves with a status or undefined. */
export type CallOperation =
  | `fs.${'readFile' | 'writeFile' | 'mkdir' | 'readdir' | 'lstat' | 'stat' | 'remove' | 'rename' | 'symlink'}`
  | 'raw'
  | 'sleep'
  | 'now'
  | 'spawn';

export interface SpawnRequest {
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  /** Whose stream each is: the shell's own, or one the worker carries. */
  stdin: 'inherit' | 'carry';
  stdout: 'inherit' | 'carry';
  stderr: 'inherit' | 'carry';
}

/** Bytes a worker may have sent that are not written yet. */
export const OUTPUT_WINDOW = 256 * 1024;
/** Writes a worker may have sent that are not written yet. */
export const OUTPUT_MESSAGES = 64;
/** Calls one worker may have open. */
export const MAX_CALLS = 256;
