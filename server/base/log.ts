import { pino } from 'pino';

/** Structured log. `fields` come first, as with pino. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(bindings: object): Logger;
}

/** JSON lines on standard error; `LOG_LEVEL` sets the level (default `info`). */
export function createLogger(options: { level?: string; name?: string } = {}): Logger {
  return pino(
    { level: options.level ?? 'info', base: options.name ? { name: options.name } : null },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** For tests that do not look at the log. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
