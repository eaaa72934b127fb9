import { joinPath } from '../files/path.ts';
import { type AppletContext, AppletError } from './contract.ts';
import { fileErrorText } from './options.ts';

/** Does something for every operand; what fails is told and makes the status 1. */
export async function forEachPath(
  context: AppletContext,
  paths: readonly string[],
  act: (path: string) => Promise<void>,
  describe: (path: string) => string = (path) => path,
): Promise<number> {
  let status = 0;
  for (const path of paths) {
    await context.breathe();
    try {
      await act(path);
    } catch (error) {
      const text = fileErrorText(error) ?? (error instanceof AppletError ? error.message : undefined);
      if (text === undefined) throw error;
      await context.stderr.write(`${context.argv[0]}: ${describe(path)}: ${text}\n`);
      status = 1;
    }
  }
  return status;
}

/** A path as an applet was given it, absolute. */
export function at(context: AppletContext, path: string): string {
  return joinPath(context.cwd, path);
}
