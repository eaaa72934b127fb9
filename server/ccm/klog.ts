import type { Writable } from 'node:stream';
import type { Clock, Logger } from '#server/base';

/**
 * A log in klog's text format, the one `kubectl logs` shows of Kubernetes' own components. `source` is the place upstream
 * writes the same line from (`file.go:123`), so that a reader can look it up there.
 */
export interface Klog {
  info(source: string, text: string): void;
  warning(source: string, text: string): void;
  error(source: string, text: string): void;
  /** Severity F; the caller ends the program. */
  fatal(source: string, text: string): void;
  /** `"message" key="value" …` */
  infoS(source: string, message: string, fields: Fields): void;
  /** `"message" err="…" key="value" …`; without an error `err` is left out as klog does for nil. */
  errorS(source: string, error: unknown, message: string, fields?: Fields): void;
  /** Whether lines of this verbosity are wanted (`-v`). */
  enabled(verbosity: number): boolean;
}

export type Fields = Readonly<Record<string, unknown>>;

export interface KlogOptions {
  output: Writable;
  clock: Pick<Clock, 'now'>;
  /** `-v`. Default 0. */
  verbosity?: number;
}

/** The process id of a container's first process, as klog pads it. */
const PID = '      1';

/** Models k8s.io/klog/v2 with its text format and no options but `-v`. */
export function createKlog({ output, clock, verbosity = 0 }: KlogOptions): Klog {
  const write = (severity: string, source: string, text: string): void => {
    if (output.destroyed || output.writableEnded) return;
    output.write(`${severity}${stamp(clock.now())} ${PID} ${source}] ${text}\n`);
  };
  return {
    info: (source, text) => write('I', source, text),
    warning: (source, text) => write('W', source, text),
    error: (source, text) => write('E', source, text),
    fatal: (source, text) => write('F', source, text),
    infoS: (source, message, fields) => write('I', source, quote(message) + pairs(fields)),
    errorS(source, error, message, fields = {}) {
      const cause = error === undefined ? {} : { err: error };
      write('E', source, quote(message) + pairs({ ...cause, ...fields }));
    },
    enabled: (level) => level <= verbosity,
  };
}

/** Lets what writes to a Logger (informers, election) write here: warnings and errors; the rest is below klog's level 4. */
export function klogLogger(log: Klog, source: string, bindings: object = {}): Logger {
  const line = (fields: object, message: string): string =>
    quote(message) + pairs({ ...bindings, ...fields });
  return {
    debug(fields, message) {
      if (log.enabled(4)) log.info(source, line(fields, message));
    },
    info(fields, message) {
      if (log.enabled(4)) log.info(source, line(fields, message));
    },
    warn: (fields, message) => log.warning(source, line(fields, message)),
    error: (fields, message) => log.error(source, line(fields, message)),
    child: (more) => klogLogger(log, source, { ...bindings, ...more }),
  };
}

/** Text as Go's %q prints it. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

function pairs(fields: Fields): string {
  return Object.entries(fields)
    .map(([key, value]) => ` ${key}=${shown(value)}`)
    .join('');
}

function shown(value: unknown): string {
  if (value instanceof Error) return quote(value.message);
  return JSON.stringify(value) ?? '"<nil>"';
}

/** `mmdd hh:mm:ss.uuuuuu`; the clock knows no more than milliseconds. */
function stamp(milliseconds: number): string {
  const iso = new Date(milliseconds).toISOString();
  return `${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)}000`;
}
