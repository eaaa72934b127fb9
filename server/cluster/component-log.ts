import type { Writable } from 'node:stream';
import type { Clock, Logger } from '#server/base';

/**
 * A Logger that writes klog lines (`I1130 20:15:04.123456       1 file.go:1] "message" key="value"`) to a container's
 * stderr, so that `kubectl logs` of a component shows what it did. The source position is the component's name.
 */
export function createComponentLog(options: {
  output: Writable;
  component: string;
  clock: Clock;
  bindings?: object;
}): Logger {
  const write = (severity: string, fields: object, message: string): void => {
    const merged = { ...options.bindings, ...fields };
    const pairs = Object.entries(merged).map(([key, value]) => ` ${key}=${JSON.stringify(plain(value))}`);
    options.output.write(
      `${severity}${stamp(options.clock.now())}       1 ${options.component}.go:1] ${JSON.stringify(message)}${pairs.join('')}\n`,
    );
  };
  return {
    debug: () => undefined,
    info: (fields, message) => write('I', fields, message),
    warn: (fields, message) => write('W', fields, message),
    error: (fields, message) => write('E', fields, message),
    child: (bindings) => createComponentLog({ ...options, bindings: { ...options.bindings, ...bindings } }),
  };
}

function plain(value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

function stamp(milliseconds: number): string {
  const iso = new Date(milliseconds).toISOString();
  return `${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)}000`;
}
