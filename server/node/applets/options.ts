import { FileError } from '../contract.ts';
import { AppletError } from './contract.ts';

/** What getopt finds: flags with how often they were given, values, and the rest. */
export interface Options {
  has(flag: string): boolean;
  value(flag: string): string | undefined;
  values(flag: string): string[];
  readonly rest: string[];
}

/**
 * Parses short options by getopt's letters (`n:` takes a value) and long ones by name (`color` or `lines=n:`: an alias of a
 * short). Throws AppletError in busybox's words.
 */
export function parseOptions(
  argv: readonly string[],
  letters: string,
  long: Readonly<Record<string, string>> = {},
  settings: { stopAtFirst?: boolean; numbers?: string } = {},
): Options {
  const found: [string, string][] = [];
  const rest: string[] = [];
  const takesValue = (letter: string): boolean =>
    letters[letters.indexOf(letter) + 1] === ':' && letters.includes(letter);
  for (let i = 1; i < argv.length; i += 1) {
    const arg = argv[i] ?? '';
    if (arg === '--') {
      rest.push(...argv.slice(i + 1));
      break;
    }
    if (arg.startsWith('--')) {
      const [name = '', ...value] = arg.slice(2).split('=');
      const short = long[name];
      if (short === undefined) throw new AppletError(`unrecognized option '--${name}'`);
      if (!takesValue(short)) found.push([short, '']);
      else if (value.length > 0) found.push([short, value.join('=')]);
      else found.push([short, argv[++i] ?? '']);
      continue;
    }
    if (settings.numbers && /^-\d+$/.test(arg)) {
      found.push([settings.numbers, arg.slice(1)]);
      continue;
    }
    if (!arg.startsWith('-') || arg === '-') {
      if (settings.stopAtFirst) {
        rest.push(...argv.slice(i));
        break;
      }
      rest.push(arg);
      continue;
    }
    for (let j = 1; j < arg.length; j += 1) {
      const letter = arg[j] ?? '';
      if (!letters.includes(letter) || letter === ':')
        throw new AppletError(`unrecognized option: ${letter}`);
      if (!takesValue(letter)) {
        found.push([letter, '']);
        continue;
      }
      const value = arg.slice(j + 1) || argv[++i];
      if (value === undefined) throw new AppletError(`option requires an argument -- '${letter}'`);
      found.push([letter, value]);
      break;
    }
  }
  return {
    has: (flag) => found.some(([name]) => name === flag),
    value: (flag) => found.findLast(([name]) => name === flag)?.[1],
    values: (flag) => found.filter(([name]) => name === flag).map(([, value]) => value),
    rest,
  };
}

const ERRORS: Readonly<Record<FileError['code'], string>> = {
  ENOENT: 'No such file or directory',
  ENOTDIR: 'Not a directory',
  EISDIR: 'Is a directory',
  EEXIST: 'File exists',
  EROFS: 'Read-only file system',
  ENOTEMPTY: 'Directory not empty',
  ELOOP: 'Too many levels of symbolic links',
  ENOSPC: 'No space left on device',
  EACCES: 'Permission denied',
  EINVAL: 'Invalid argument',
};

/** strerror of a FileError; undefined when it is another kind of error. */
export function fileErrorText(error: unknown): string | undefined {
  return error instanceof FileError ? ERRORS[error.code] : undefined;
}
