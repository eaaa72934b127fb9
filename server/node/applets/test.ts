import { joinPath } from '../files/path.ts';
import type { AsyncFiles } from './contract.ts';

export interface TestWorld {
  readonly files: AsyncFiles;
  readonly cwd: string;
  isTerminal(fd: number): boolean;
}

/** `test` and `[`: the verdict, or what is wrong with the expression. */
export async function evaluateTest(
  words: readonly string[],
  world: TestWorld,
): Promise<boolean | { error: string }> {
  let at = 0;
  const fail = (error: string): never => {
    throw new TestError(error);
  };
  const unary = async (operator: string, operand: string): Promise<boolean> => {
    if (operator === '-n') return operand !== '';
    if (operator === '-z') return operand === '';
    if (operator === '-t') return world.isTerminal(Number(operand));
    const path = joinPath(world.cwd, operand === '' ? '/nonexistent' : operand);
    if (operator === '-L' || operator === '-h') return (await world.files.lstat(path))?.type === 'symlink';
    const stat = await world.files.stat(path);
    if (!stat) return false;
    switch (operator) {
      case '-f':
        return stat.type === 'file';
      case '-d':
        return stat.type === 'directory';
      case '-s':
        return stat.size > 0;
      case '-x':
        return stat.type === 'directory' || (stat.mode & 0o111) !== 0;
      case '-b':
      case '-c':
      case '-p':
      case '-S':
      case '-u':
      case '-g':
      case '-k':
        return false;
      default:
        return true;
    }
  };
  const integer = (text: string): bigint =>
    /^\s*[-+]?\d+\s*$/.test(text) ? BigInt(text.trim().replace('+', '')) : fail(`${text}: bad number`);
  const binary = async (left: string, operator: string, right: string): Promise<boolean> => {
    switch (operator) {
      case '=':
      case '==':
        return left === right;
      case '!=':
        return left !== right;
      case '<':
        return left < right;
      case '>':
        return left > right;
      case '-eq':
        return integer(left) === integer(right);
      case '-ne':
        return integer(left) !== integer(right);
      case '-lt':
        return integer(left) < integer(right);
      case '-le':
        return integer(left) <= integer(right);
      case '-gt':
        return integer(left) > integer(right);
      case '-ge':
        return integer(left) >= integer(right);
      default: {
        const [a, b] = await Promise.all(
          [left, right].map((path) => world.files.stat(joinPath(world.cwd, path))),
        );
        if (operator === '-ef') return a !== undefined && a === b;
        return operator === '-nt'
          ? (a?.modified ?? 0) > (b?.modified ?? 0)
          : (a?.modified ?? 0) < (b?.modified ?? 0);
      }
    }
  };
  const isBinary = (word: string | undefined): boolean =>
    word !== undefined && /^(=|==|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)$/.test(word);
  const isUnary = (word: string): boolean => /^-[bcdefghkLnprsStuwxz]$/.test(word);
  const primary = async (): Promise<boolean> => {
    const word = words[at] ?? fail('argument expected');
    if (word === '!') {
      at += 1;
      return !(await primary());
    }
    if (isBinary(words[at + 1]) && at + 2 < words.length) {
      at += 3;
      return binary(word, words[at - 2] ?? '', words[at - 1] ?? '');
    }
    if (word === '(') {
      at += 1;
      const value = await or();
      if (words[at] !== ')') fail('closing paren expected');
      at += 1;
      return value;
    }
    if (isUnary(word) && at + 1 < words.length) {
      at += 2;
      return unary(word, words[at - 1] ?? '');
    }
    at += 1;
    return word !== '';
  };
  const and = async (): Promise<boolean> => {
    let value = await primary();
    while (words[at] === '-a') {
      at += 1;
      const next = await primary();
      value = value && next;
    }
    return value;
  };
  const or = async (): Promise<boolean> => {
    let value = await and();
    while (words[at] === '-o') {
      at += 1;
      const next = await and();
      value = value || next;
    }
    return value;
  };
  if (words.length === 0) return false;
  try {
    const value = await or();
    return at < words.length ? { error: `${words[at]}: unknown operand` } : value;
  } catch (error) {
    if (error instanceof TestError) return { error: error.message };
    throw error;
  }
}

class TestError extends Error {
  override readonly name = 'TestError';
}
