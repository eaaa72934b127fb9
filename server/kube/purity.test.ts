import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The settings of the pure rooms, and the files they are for. */
function pureProject(): ts.ParsedCommandLine {
  const file = `${root}tsconfig.pure.json`;
  const { config } = ts.readConfigFile(file, (path) => ts.sys.readFile(path)) as { config: unknown };
  return ts.parseJsonConfigFileContent(config, ts.sys, root, undefined, file);
}

/** Compiler errors of files, one of which may be given as text. */
function errorsOf(files: string[], text?: { file: string; content: string }): string[] {
  const { options } = pureProject();
  const host = ts.createCompilerHost(options);
  if (text) {
    const original = { ...host };
    host.fileExists = (file) => file === text.file || original.fileExists(file);
    host.getSourceFile = (file, target, ...rest) =>
      file === text.file
        ? ts.createSourceFile(file, text.content, target)
        : original.getSourceFile(file, target, ...rest);
  }
  const program = ts.createProgram(files, options, host);
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('the vocabulary is pure', () => {
  it('compiles without a platform', () => {
    const { fileNames } = pureProject();
    expect(fileNames.length).toBeGreaterThan(20);
    expect(errorsOf(fileNames)).toEqual([]);
  }, 60_000);

  it.each(['window', 'process', 'document', 'setTimeout', 'TextDecoder'])('cannot see %s', (name) => {
    const file = `${root}server/kube/canary.ts`;
    const [error = ''] = errorsOf([file], { file, content: `export const seen = ${name};\n` });
    expect(error).toContain(`Cannot find name '${name}'`);
  });

  it('cannot import from Node', () => {
    const file = `${root}server/kube/canary.ts`;
    const [error = ''] = errorsOf([file], { file, content: `export { readFileSync } from 'node:fs';\n` });
    expect(error).toContain("'node:fs'");
  });
});
