const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
  "'": "'",
};
/** Widths and repeats are cut here. */
const MAX_WIDTH = 10_000;
const MAX_ROUNDS = 100_000;

export function unescapeText(text: string): string {
  return text.replace(
    /\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))/gs,
    (all, octal?: string, hex?: string, letter?: string) => {
      if (octal) return String.fromCharCode(Number.parseInt(octal, 8) & 255);
      if (hex) return String.fromCharCode(Number.parseInt(hex, 16));
      return ESCAPES[letter ?? ''] ?? all;
    },
  );
}

/** POSIX printf: the format is used again while arguments are left. */
export function formatPrintf(format: string, args: readonly string[]): string {
  let out = '';
  let at = 0;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const before = at;
    out += format.replace(
      /%%|%([-+ 0#]*)(\*|\d+)?(?:\.(\*|\d+))?([diouxXcsbeEfFgGq])|\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)/gs,
      (all, flags?: string, width?: string, precision?: string, kind?: string) => {
        if (all === '%%') return '%';
        if (all.startsWith('\\')) return unescapeText(all);
        const wide = width === '*' ? Number(args[at++] ?? 0) : width ? Number(width) : 0;
        const exact =
          precision === '*'
            ? Number(args[at++] ?? 0)
            : precision === undefined
              ? undefined
              : Number(precision);
        return pad(
          one(kind ?? 's', args[at++] ?? '', exact, flags ?? ''),
          Math.min(wide, MAX_WIDTH),
          flags ?? '',
          kind ?? 's',
        );
      },
    );
    if (at >= args.length || at === before) break;
  }
  return out;
}

function one(kind: string, argument: string, precision: number | undefined, flags: string): string {
  if (kind === 's' || kind === 'q') return precision === undefined ? argument : argument.slice(0, precision);
  if (kind === 'b') return unescapeText(argument);
  if (kind === 'c') return argument.slice(0, 1);
  const number = /^['"]/.test(argument) ? (argument.codePointAt(1) ?? 0) : Number(argument || 0);
  const value = Number.isNaN(number) ? 0 : number;
  const sign = flags.includes('+') && value >= 0 ? '+' : '';
  if (kind === 'e' || kind === 'E') return sign + value.toExponential(precision ?? 6);
  if ('fFgG'.includes(kind))
    return (
      sign +
      (kind.toLowerCase() === 'g'
        ? String(Number(value.toPrecision(precision ?? 6)))
        : value.toFixed(precision ?? 6))
    );
  const whole = Math.trunc(value);
  if (kind === 'x' || kind === 'X' || kind === 'o' || kind === 'u') {
    const unsigned = whole < 0 ? BigInt.asUintN(64, BigInt(whole)) : BigInt(whole);
    const digits = unsigned.toString(kind === 'o' ? 8 : kind === 'u' ? 10 : 16).padStart(precision ?? 0, '0');
    return (
      (flags.includes('#') && kind !== 'u' ? (kind === 'o' ? '0' : '0x') : '') +
      (kind === 'X' ? digits.toUpperCase() : digits)
    );
  }
  return sign + (whole < 0 ? '-' : '') + String(Math.abs(whole)).padStart(precision ?? 0, '0');
}

function pad(text: string, width: number, flags: string, kind: string): string {
  if (text.length >= width) return text;
  if (flags.includes('-')) return text.padEnd(width);
  if (flags.includes('0') && !'scbq'.includes(kind)) {
    const sign = /^[-+]/.test(text) ? (text[0] ?? '') : '';
    return sign + text.slice(sign.length).padStart(width - sign.length, '0');
  }
  return text.padStart(width);
}
