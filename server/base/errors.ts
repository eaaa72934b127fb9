/** A broken promise of our own code: never the user's fault, never retried, always logged. */
export class InternalError extends Error {
  override readonly name = 'InternalError';
}

/** The world outside failed (disk, socket, another process). `remedy` tells a person what to do next. */
export class OperationalError extends Error {
  override readonly name = 'OperationalError';
  readonly remedy: string | undefined;
  constructor(message: string, options: { remedy?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.remedy = options.remedy;
  }
}

/** Marks a branch the types say cannot be reached. */
export function assertNever(value: never, what: string): never {
  throw new InternalError(`unexpected ${what}: ${JSON.stringify(value)}`);
}

/** The text of anything that was thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
