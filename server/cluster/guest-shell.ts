import { errorMessage } from '#server/base';
import type { FileSystem } from '#server/node';

/** A command of the guest: prints to the cloud-init log, resolves with its exit code. */
export type GuestCommand = (args: readonly string[], print: (text: string) => void) => Promise<number>;

/**
 * Runs one line of `runcmd` in the guest: commands joined by `&&`, quotes, and `>`/`>>` of a command's output. The
 * guest has the commands it is given and nothing else: what it does not have ends with 127, as in a real shell.
 */
export async function runGuestLine(
  line: string,
  options: {
    files: FileSystem;
    commands: Readonly<Record<string, GuestCommand>>;
    log: (text: string) => void;
  },
): Promise<number> {
  for (const part of splitAnd(tokenize(line))) {
    const code = await runOne(part, options);
    if (code !== 0) return code;
  }
  return 0;
}

interface Word {
  text: string;
  /** Unquoted `&&`, `>`, `>>`. */
  operator: boolean;
}

function tokenize(line: string): Word[] {
  const words: Word[] = [];
  const pattern = /\s*(?:(&&|>>|>)|((?:'[^']*'|"[^"]*"|\\.|[^\s'"\\&>])+))/gy;
  for (let match = pattern.exec(line); match; match = pattern.exec(line)) {
    if (match[1]) words.push({ text: match[1], operator: true });
    else words.push({ text: unquote(match[2] ?? ''), operator: false });
  }
  return words;
}

function unquote(word: string): string {
  return word.replace(
    /'([^']*)'|"([^"]*)"|\\(.)/g,
    (_all, single?: string, double?: string, escaped?: string) => single ?? double ?? escaped ?? '',
  );
}

function splitAnd(words: readonly Word[]): Word[][] {
  const parts: Word[][] = [[]];
  for (const word of words) {
    if (word.operator && word.text === '&&') parts.push([]);
    else parts.at(-1)?.push(word);
  }
  return parts.filter((part) => part.length > 0);
}

async function runOne(
  words: readonly Word[],
  options: {
    files: FileSystem;
    commands: Readonly<Record<string, GuestCommand>>;
    log: (text: string) => void;
  },
): Promise<number> {
  const redirect = words.findIndex((word) => word.operator);
  const argv = (redirect < 0 ? words : words.slice(0, redirect)).map((word) => word.text);
  const target = redirect < 0 ? undefined : words[redirect + 1]?.text;
  const [name = '', ...args] = argv;
  const command = options.commands[name];
  if (!command) {
    options.log(`sh: ${name}: not found\n`);
    return 127;
  }
  let output = '';
  let code: number;
  try {
    code = await command(args, target === undefined ? options.log : (text) => void (output += text));
  } catch (error) {
    options.log(`${name}: ${errorMessage(error)}\n`);
    return 1;
  }
  if (target !== undefined) {
    options.files.mkdir(target.slice(0, target.lastIndexOf('/')) || '/', { recursive: true });
    const before =
      words[redirect]?.text === '>>' && options.files.exists(target)
        ? Buffer.from(options.files.readFile(target)).toString()
        : '';
    options.files.writeFile(target, before + output);
  }
  return code;
}
