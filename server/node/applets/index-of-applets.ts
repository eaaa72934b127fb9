import { BrokenPipeError, TooMuchInputError } from '../shell/byte-stream.ts';
import { type Applet, type AppletContext, AppletError } from './contract.ts';
import { fileApplets } from './file-applets.ts';
import { isDevice } from './open.ts';
import { fileErrorText } from './options.ts';
import { sed } from './sed.ts';
import { systemApplets } from './system-applets.ts';
import { tar } from './tar.ts';
import { textApplets } from './text-applets.ts';

/** Every small program, by name. */
export const applets: Readonly<Record<string, Applet | undefined>> = {
  ...fileApplets,
  ...textApplets,
  ...systemApplets,
  sed,
  tar,
};

export const appletNames: readonly string[] = Object.keys(applets).sort();

/** Work bounded by what the container already holds: these may run without a worker. Patterns and endless output may not. */
const BOUNDED = new Set([
  'cat',
  'ls',
  'mkdir',
  'rmdir',
  'rm',
  'cp',
  'mv',
  'ln',
  'touch',
  'chmod',
  'chown',
  'stat',
  'readlink',
  'realpath',
  'basename',
  'dirname',
  'du',
  'wc',
  'sleep',
  'date',
  'uname',
  'env',
  'id',
  'true',
  'false',
  'printenv',
  'hostname',
  'whoami',
  'echo',
  'pwd',
  'nproc',
  'which',
  'clear',
  'tty',
  'sync',
  'df',
  'ps',
  'tar',
  'head',
  'tail',
  'md5sum',
  'sha256sum',
  'base64',
  'tee',
]);

export function isBounded(argv: readonly string[]): boolean {
  const name = (argv[0] ?? '').split('/').at(-1) ?? '';
  if (name === 'env' && argv.length > 1) return false;
  return BOUNDED.has(name) && !argv.some((arg) => isDevice(arg) || arg.includes('/dev/'));
}

/** Runs an applet as a process: its complaints on standard error, its status. */
export async function runApplet(applet: Applet, context: AppletContext): Promise<number> {
  try {
    return await applet(context);
  } catch (error) {
    if (error instanceof BrokenPipeError) return 141;
    const text =
      error instanceof AppletError || error instanceof TooMuchInputError
        ? error.message
        : fileErrorText(error);
    if (text === undefined) throw error;
    await context.stderr.write(`${context.argv[0]}: ${text}\n`);
    return error instanceof AppletError ? error.exitCode : 1;
  }
}
