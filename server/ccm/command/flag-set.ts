/** How a flag's text becomes its value. Durations are milliseconds. */
export type FlagType =
  | 'string'
  | 'bool'
  | 'int'
  | 'int32'
  | 'float32'
  | 'duration'
  | 'strings'
  | 'ip'
  | 'level'
  | 'other';

export interface Flag {
  readonly name: string;
  readonly type: FlagType;
  /** As `--help` shows it. */
  readonly fallback: string;
  readonly usage: string;
  readonly shorthand?: string;
  /** What is printed when somebody uses it. */
  readonly deprecated?: string;
}

/** A command line that is wrong, in pflag's words. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

export interface ParsedFlags {
  /** The texts given for a flag, in order. */
  given(name: string): readonly string[];
  /** What is no flag. */
  readonly positional: readonly string[];
  /** `Flag --x has been deprecated, …` */
  readonly warnings: readonly string[];
}

/** The value a flag takes when it is named without one; undefined: it needs one. */
function bareValue(flag: Flag): string | undefined {
  return flag.type === 'bool' ? 'true' : undefined;
}

/**
 * Parses an argument vector without the program's name, flags and other arguments in any order, `_` counting as `-`.
 * Throws FlagError. Models github.com/spf13/pflag.
 */
export function parseFlags(flags: readonly Flag[], argv: readonly string[]): ParsedFlags {
  const byName = new Map(flags.map((flag) => [flag.name, flag]));
  const byShorthand = new Map(flags.map((flag) => [flag.shorthand, flag]));
  const values = new Map<string, string[]>();
  const positional: string[] = [];
  const warnings: string[] = [];
  const rest = [...argv];

  const set = (flag: Flag, value: string): void => {
    checkValue(flag, value);
    if (flag.deprecated) warnings.push(`Flag --${flag.name} has been deprecated, ${flag.deprecated}`);
    values.set(flag.name, [...(values.get(flag.name) ?? []), value]);
  };
  const long = (argument: string): void => {
    const body = argument.slice(2);
    if (body === '' || body.startsWith('-') || body.startsWith('=')) {
      throw new FlagError(`bad flag syntax: ${argument}`);
    }
    const equals = body.indexOf('=');
    const name = equals < 0 ? body : body.slice(0, equals);
    const flag = byName.get(name.replaceAll('_', '-'));
    if (!flag) throw new FlagError(`unknown flag: --${name}`);
    const value = equals < 0 ? (bareValue(flag) ?? rest.shift()) : body.slice(equals + 1);
    if (value === undefined) throw new FlagError(`flag needs an argument: --${name}`);
    set(flag, value);
  };
  const short = (argument: string): void => {
    for (let letters = argument.slice(1); letters !== ''; ) {
      const [letter = ''] = letters;
      const flag = byShorthand.get(letter);
      if (!flag) throw new FlagError(`unknown shorthand flag: '${letter}' in -${letters}`);
      const inline = letters.slice(1);
      const bare = bareValue(flag);
      if (bare !== undefined && !inline.startsWith('=')) {
        set(flag, bare);
        letters = inline;
        continue;
      }
      const value = inline === '' ? rest.shift() : inline.replace(/^=/, '');
      if (value === undefined) throw new FlagError(`flag needs an argument: '${letter}' in -${letters}`);
      set(flag, value);
      return;
    }
  };
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    if (argument === '--') positional.push(...rest.splice(0));
    else if (argument.startsWith('--')) long(argument);
    else if (argument.length > 1 && argument.startsWith('-')) short(argument);
    else positional.push(argument);
  }
  return { given: (name) => values.get(name) ?? [], positional, warnings };
}

/** Why a text is no value of a type, in the words of Go's parsers; undefined when it is one. */
function complaint(type: FlagType, value: string): string | undefined {
  const quoted = JSON.stringify(value);
  switch (type) {
    case 'bool':
      return parseBool(value) === undefined
        ? `strconv.ParseBool: parsing ${quoted}: invalid syntax`
        : undefined;
    case 'int':
    case 'int32':
    case 'level':
      return /^[+-]?\d+$/.test(value) ? undefined : `strconv.ParseInt: parsing ${quoted}: invalid syntax`;
    case 'float32':
      return value.trim() === value && value !== '' && Number.isFinite(Number(value))
        ? undefined
        : `strconv.ParseFloat: parsing ${quoted}: invalid syntax`;
    case 'duration':
      return durationComplaint(value);
    case 'ip':
      return /^[0-9a-fA-F:.]+$/.test(value) ? undefined : `failed to parse IP: ${quoted}`;
    case 'string':
    case 'strings':
    case 'other':
      return undefined;
  }
}

function checkValue(flag: Flag, value: string): void {
  const cause = complaint(flag.type, value);
  if (cause === undefined) return;
  const name = flag.shorthand ? `-${flag.shorthand}, --${flag.name}` : `--${flag.name}`;
  throw new FlagError(`invalid argument ${JSON.stringify(value)} for "${name}" flag: ${cause}`);
}

/** Go's strconv.ParseBool. */
export function parseBool(value: string): boolean | undefined {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(value)) return true;
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(value)) return false;
  return undefined;
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+\.?\d*|\.\d+)([a-zµμ]+)/gy;

/** Go's time.ParseDuration, in milliseconds; undefined when it is none. */
export function parseDuration(value: string): number | undefined {
  const sign = value.startsWith('-') ? -1 : 1;
  const text = value.replace(/^[+-]/, '');
  if (text === '0') return 0;
  let total = 0;
  let end = 0;
  for (const match of text.matchAll(PART)) {
    const unit = UNITS[match[2] ?? ''];
    if (unit === undefined) return undefined;
    total += Number(match[1]) * unit;
    end = match.index + match[0].length;
  }
  return end > 0 && end === text.length ? sign * total : undefined;
}

function durationComplaint(value: string): string | undefined {
  if (parseDuration(value) !== undefined) return undefined;
  const quoted = JSON.stringify(value);
  const text = value.replace(/^[+-]/, '');
  if (/^(\d+\.?\d*|\.\d+)$/.test(text)) return `time: missing unit in duration ${quoted}`;
  const unit = /^(?:\d+\.?\d*|\.\d+)([^\d.]+)/.exec(text)?.[1];
  if (unit !== undefined && !Object.hasOwn(UNITS, unit)) {
    return `time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
  }
  return `time: invalid duration ${quoted}`;
}
