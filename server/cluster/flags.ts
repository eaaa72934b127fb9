/** Command-line flags as the components of Kubernetes take them: `--name=value`, `--name value`, `--switch`. */
export interface Flags {
  /** The last value given, or undefined. A bare switch is `true`. */
  get(name: string): string | undefined;
  /** The value, or `fallback`. */
  string(name: string, fallback: string): string;
  boolean(name: string, fallback: boolean): boolean;
}

/** Parses an argument vector without the program's name. What is no flag is ignored, as pflag does for components. */
export function parseFlags(argv: readonly string[]): Flags {
  const values = new Map<string, string>();
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? '';
    if (!argument.startsWith('--')) continue;
    const equals = argument.indexOf('=');
    if (equals > 0) {
      values.set(argument.slice(2, equals), argument.slice(equals + 1));
      continue;
    }
    const next = argv[index + 1];
    if (next !== undefined && !next.startsWith('--')) {
      values.set(argument.slice(2), next);
      index++;
    } else {
      values.set(argument.slice(2), 'true');
    }
  }
  return {
    get: (name) => values.get(name),
    string: (name, fallback) => values.get(name) ?? fallback,
    boolean: (name, fallback) => (values.has(name) ? values.get(name) !== 'false' : fallback),
  };
}
