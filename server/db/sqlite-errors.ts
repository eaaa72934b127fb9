import { dirname } from 'node:path';
import { errorMessage, InternalError, OperationalError } from '#server/base';

interface Diagnosis {
  readonly what: string;
  readonly remedy: string;
}

/** SQLite's primary result codes (the low byte of an extended one) that the world outside causes. */
const PERM = 3;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

/** What a result code means for the person who runs us; undefined for mistakes in our SQL. */
function diagnose(code: number, path: string): Diagnosis | undefined {
  const folder = dirname(path);
  switch (code) {
    case CANTOPEN:
      return {
        what: `${path} cannot be opened`,
        remedy: `Make sure the folder ${folder} exists, and that this user may create and write files in it.`,
      };
    case READONLY:
    case PERM:
      return {
        what: `${path} cannot be written`,
        remedy: `Give this user write permission on ${path} and on its folder ${folder}.`,
      };
    case FULL:
      return {
        what: `${path} cannot grow: the disk is full`,
        remedy: `Free space on the disk that holds ${folder}.`,
      };
    case BUSY:
    case LOCKED:
      return {
        what: `${path} is locked by another process`,
        remedy: `Stop the other process that uses ${path}, or choose another DATA_DIR.`,
      };
    case NOTADB:
    case CORRUPT:
      return {
        what: `${path} is damaged, or no SQLite database`,
        remedy: `Move ${path} and the files beginning with that name away; restore a backup or start with an empty one.`,
      };
    case IOERR:
      return {
        what: `${path} cannot be read or written`,
        remedy: `Check the disk that holds ${folder}.`,
      };
    default:
      return undefined;
  }
}

/** libsql reports a failed open as a plain Error whose text ends in the result code. */
const OPEN_FAILURE = /Unable to open connection .*: (\d+)"?\)?$/s;

/** The primary result code; libsql names few of the extended ones, so their numbers count. */
function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('rawCode' in error && typeof error.rawCode === 'number') return error.rawCode & 0xff;
  const code = OPEN_FAILURE.exec(error.message)?.[1];
  return code === undefined ? undefined : Number(code) & 0xff;
}

/** Whether another connection holds the lock that was asked for. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === BUSY;
}

/**
 * Turns what libsql threw about the database at `path` into the error to throw: OperationalError with a remedy when
 * the world failed, InternalError when our SQL or its use is wrong. Errors of ours pass through.
 */
export function sqliteError(error: unknown, path: string): Error {
  if (error instanceof OperationalError || error instanceof InternalError) return error;
  const code = codeOf(error);
  const diagnosis = code === undefined ? undefined : diagnose(code, path);
  if (diagnosis)
    return new OperationalError(`${diagnosis.what} (SQLite ${code}: ${errorMessage(error)})`, {
      remedy: diagnosis.remedy,
      cause: error,
    });
  return new InternalError(`${path}: ${errorMessage(error)}`, { cause: error });
}
