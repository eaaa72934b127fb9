import { FileError, type FileStat, type FileSystem, type Program } from '../contract.ts';
import { joinPath, resolveLinks } from '../files/path.ts';

/** Why a command cannot be started, as the kernel says it. */
export class ExecError extends Error {
  override readonly name = 'ExecError';
  /** What a shell's exit status would be: 127 not found, 126 found but not startable. */
  readonly exitCode: 126 | 127;
  constructor(message: string, exitCode: 126 | 127) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface Lookup {
  readonly program: Program;
  /** argv as the program gets it: a script is preceded by its interpreter. */
  readonly argv: readonly string[];
}

/**
 * Finds what argv starts, as execvp does: by path, or along PATH; scripts by their `#!` line. Throws ExecError with
 * runc's texts.
 */
export function lookUpProgram(
  argv: readonly string[],
  where: {
    programs: Readonly<Record<string, Program>>;
    files: FileSystem;
    env: Readonly<Record<string, string>>;
    cwd: string;
  },
): Lookup {
  const name = argv[0] ?? '';
  if (name === '') throw new ExecError('exec: "": executable file not found in $PATH', 127);
  const candidates = name.includes('/')
    ? [joinPath(where.cwd, name)]
    : (where.env.PATH ?? DEFAULT_PATH).split(':').map((directory) => joinPath(directory || where.cwd, name));
  let denied = false;
  for (const candidate of candidates) {
    const found = tryPath(candidate, argv, where);
    if (found === 'denied') denied = true;
    else if (found) return found;
  }
  if (name.includes('/')) {
    throw denied
      ? new ExecError(`exec: "${name}": permission denied`, 126)
      : new ExecError(`exec: "${name}": stat ${name}: no such file or directory`, 127);
  }
  throw denied
    ? new ExecError(`exec: "${name}": permission denied`, 126)
    : new ExecError(`exec: "${name}": executable file not found in $PATH`, 127);
}

function tryPath(
  path: string,
  argv: readonly string[],
  where: { programs: Readonly<Record<string, Program>>; files: FileSystem },
): Lookup | 'denied' | undefined {
  const direct = where.programs[path];
  if (direct) return { program: direct, argv };
  const real = follow(where.files, path);
  if (real === undefined) return undefined;
  const linked = where.programs[real];
  if (linked) return { program: linked, argv };
  const stat = statOrNothing(where.files, real);
  if (!stat) return undefined;
  if (stat.type !== 'file' || (stat.mode & 0o111) === 0) return 'denied';
  const head = Buffer.from(where.files.readFile(real).subarray(0, 256)).toString('latin1');
  const shebang = /^#!\s*(\S+)(?:[ \t]+(\S[^\n]*))?\n/.exec(head);
  if (!shebang) return 'denied';
  const interpreter = [shebang[1] ?? '', ...(shebang[2] ? [shebang[2].trim()] : [])];
  const program =
    where.programs[interpreter[0] ?? ''] ?? where.programs[follow(where.files, interpreter[0] ?? '') ?? ''];
  return program ? { program, argv: [...interpreter, path, ...argv.slice(1)] } : undefined;
}

function follow(files: FileSystem, path: string): string | undefined {
  try {
    return resolveLinks(path, (p) => statOrNothing(files, p), true);
  } catch (error) {
    if (error instanceof FileError) return undefined;
    throw error;
  }
}

function statOrNothing(files: FileSystem, path: string): FileStat | undefined {
  try {
    return files.stat(path);
  } catch (error) {
    if (error instanceof FileError) return undefined;
    throw error;
  }
}
