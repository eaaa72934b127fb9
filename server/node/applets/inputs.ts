import type { ByteReader } from '../shell/byte-stream.ts';
import type { AppletContext } from './contract.ts';
import { openInput } from './open.ts';
import { forEachPath } from './paths.ts';

/** Does something with every input of an applet: the files named, or standard input. */
export async function eachInput(
  context: AppletContext,
  paths: readonly string[],
  act: (input: ByteReader, name: string) => Promise<void>,
): Promise<number> {
  return forEachPath(context, paths.length > 0 ? paths : ['-'], async (path) =>
    act(path === '-' ? context.stdin : await openInput(context, path), path),
  );
}

/** Reads an input line by line; stops when `act` says false. */
export async function eachLine(
  context: AppletContext,
  input: ByteReader,
  act: (line: string, complete: boolean) => Promise<boolean | undefined | void>,
): Promise<void> {
  for (let got = await input.readLine(); got; got = await input.readLine()) {
    if ((await act(got.line, got.complete)) === false) return;
    await context.breathe();
  }
}
