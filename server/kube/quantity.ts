import { badRequest } from './status-error.ts';

type Format = 'DecimalExponent' | 'BinarySI' | 'DecimalSI';

/** A parsed quantity: billionths as an integer, and the family of suffixes it was written in. */
interface Quantity {
  readonly nano: bigint;
  readonly format: Format;
  /** The text, when it already is in canonical form. */
  readonly text?: string;
}

const NANO = 1_000_000_000n;
const MAX_BINARY = ((1n << 63n) - 1n) * NANO;
const MAX_EXPONENT = 300;
const MAX_INT64_DIGITS = 18;
const MAX_TEXT_LENGTH = 400;
const MAX_CACHED = 2048;

const DECIMAL_SUFFIXES = new Map<string, number>([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const BINARY_SUFFIXES = new Map<string, number>([
  ['Ki', 10],
  ['Mi', 20],
  ['Gi', 30],
  ['Ti', 40],
  ['Pi', 50],
  ['Ei', 60],
]);
const DECIMAL_NAMES = new Map([...DECIMAL_SUFFIXES].map(([suffix, exponent]) => [exponent, suffix]));
const BINARY_NAMES = ['', ...BINARY_SUFFIXES.keys()];

const SPLIT = /^([+-]?)(\d*)(?:(\.)(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/;
const FORMAT_ERROR =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_ERROR = "unable to parse quantity's suffix";

const parsed = new Map<string, Quantity>();

/** A value as a number, exact where a double can be: `"1500m"` is 1.5, `"1Ki"` is 1024. Throws StatusError 400 on bad text. */
export function quantityToNumber(quantity: string): number {
  const { nano } = parse(quantity);
  const units = nano / NANO;
  return Number(units) + Number(nano - units * NANO) / 1e9;
}

/** Thousandths, rounded away from zero as Quantity.MilliValue does. Throws StatusError 400 on bad text. */
export function quantityToMilli(quantity: string): bigint {
  return divideAwayFromZero(parse(quantity).nano, 1_000_000n);
}

/** -1, 0 or 1. Throws StatusError 400 on bad text. */
export function compareQuantities(a: string, b: string): number {
  const left = parse(a).nano;
  const right = parse(b).nano;
  return left < right ? -1 : left > right ? 1 : 0;
}

/** a + b in canonical form, in the suffixes of `a` (of `b` when `a` is zero). Throws StatusError 400 on bad text. */
export function addQuantities(a: string, b: string): string {
  const left = parse(a);
  const right = parse(b);
  return render(left.nano + right.nano, left.nano === 0n ? right.format : left.format);
}

/** a - b in canonical form, in the suffixes of `a` (of `b` when `a` is zero). Throws StatusError 400 on bad text. */
export function subtractQuantities(a: string, b: string): string {
  const left = parse(a);
  const right = parse(b);
  return render(left.nano - right.nano, left.nano === 0n ? right.format : left.format);
}

/**
 * The text the API server would answer for this quantity: no fraction, the largest suffix that needs none, the same
 * family of suffixes (`"0.5"` → `"500m"`, `"1024Ki"` → `"1Mi"`). Throws StatusError 400 in upstream's words on bad text.
 * Models k8s.io/apimachinery/pkg/api/resource.
 */
export function canonicalQuantity(quantity: string): string {
  const { nano, format, text } = parse(quantity);
  return text ?? render(nano, format);
}

/** Whether the text is a quantity. */
export function isQuantity(quantity: string): boolean {
  return typeof read(quantity) !== 'string';
}

function parse(text: string): Quantity {
  const known = parsed.get(text);
  if (known) return known;
  const quantity = read(text);
  if (typeof quantity === 'string') throw badRequest(quantity);
  if (parsed.size >= MAX_CACHED) parsed.clear();
  parsed.set(text, quantity);
  return quantity;
}

/** The quantity, or why there is none. */
function read(text: string): Quantity | string {
  const parts = text.length > MAX_TEXT_LENGTH ? null : SPLIT.exec(text);
  if (!parts || text === '') return FORMAT_ERROR;
  const [, sign = '', leading = '', , fraction = '', suffix = ''] = parts;
  const whole = leading.replace(/^0+/, '') || '0';
  const scale = readSuffix(suffix);
  if (!scale) return SUFFIX_ERROR;
  const digits = BigInt(whole + fraction);
  const exponent = (scale.binary ? 0 : scale.exponent) - fraction.length + 9;
  const mantissa = scale.binary ? digits << BigInt(scale.exponent) : digits;
  const nano =
    exponent >= 0
      ? mantissa * 10n ** BigInt(exponent)
      : divideAwayFromZero(mantissa, 10n ** BigInt(-exponent));
  const signed = (value: bigint): bigint => (sign === '-' ? -value : value);
  if (keepsText(whole, fraction, scale)) return { nano: signed(nano), format: scale.format, text };
  if (!scale.binary) return { nano: signed(nano), format: scale.format };
  if (nano > MAX_BINARY) return { nano: signed(MAX_BINARY), format: scale.format };
  return { nano: signed(nano), format: nano > 0n && nano < NANO && fraction ? 'DecimalSI' : scale.format };
}

interface Scale {
  exponent: number;
  binary: boolean;
  format: Format;
}

function readSuffix(suffix: string): Scale | undefined {
  const decimal = DECIMAL_SUFFIXES.get(suffix);
  if (decimal !== undefined) return { exponent: decimal, binary: false, format: 'DecimalSI' };
  const binary = BINARY_SUFFIXES.get(suffix);
  if (binary !== undefined) return { exponent: binary, binary: true, format: 'BinarySI' };
  if (!/^[eE][-+]?\d+$/.test(suffix)) return undefined;
  const exponent = Number(suffix.slice(1));
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined;
  return { exponent, binary: false, format: 'DecimalExponent' };
}

/** Upstream keeps the text of a number that needs no rewriting, even where another spelling would do. */
function keepsText(whole: string, fraction: string, scale: Scale): boolean {
  const length = whole.length + fraction.length;
  if (scale.binary) {
    const fits = 15 - whole.length - Math.floor((scale.exponent * 3) / 10) - 1 >= 0;
    return fits && fraction === '' && Number(whole) % 8 !== 0;
  }
  const exponent = scale.exponent - fraction.length;
  const written = whole + fraction;
  return (
    length <= MAX_INT64_DIGITS &&
    exponent >= -9 &&
    exponent % 3 === 0 &&
    !written.endsWith('000') &&
    !written.startsWith('0')
  );
}

function render(nano: bigint, format: Format): string {
  if (nano === 0n) return '0';
  const small = nano > -1024n * NANO && nano < 1024n * NANO;
  if (format === 'BinarySI' && !small && nano % NANO === 0n) {
    let value = nano / NANO;
    let step = 0;
    while (value % 1024n === 0n && step < BINARY_NAMES.length - 1) {
      value /= 1024n;
      step++;
    }
    return `${value}${BINARY_NAMES[step] ?? ''}`;
  }
  let value = nano;
  let exponent = -9;
  const largest = format === 'DecimalExponent' ? MAX_EXPONENT : 18;
  while (value % 1000n === 0n && exponent < largest) {
    value /= 1000n;
    exponent += 3;
  }
  if (format !== 'DecimalExponent') return `${value}${DECIMAL_NAMES.get(exponent) ?? ''}`;
  return exponent === 0 ? `${value}` : `${value}e${exponent}`;
}

function divideAwayFromZero(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  if (quotient * divisor === value) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}
