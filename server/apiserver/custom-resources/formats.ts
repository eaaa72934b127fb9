import { isIP, isIPv4, isIPv6 } from 'node:net';

const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const DATE_TIME =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const DURATION = /^([+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))+$|^0$/;

const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  date: (value) => DATE.test(value),
  'date-time': (value) => DATE_TIME.test(value),
  datetime: (value) => DATE_TIME.test(value),
  duration: (value) => DURATION.test(value),
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCidr,
  mac: (value) => /^([0-9a-f]{2}[:-]){5,7}[0-9a-f]{2}$/i.test(value),
  uuid: (value) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(value),
  uri: (value) => URL.canParse(value),
  email: (value) => /^[^\s@<>]+@[^\s@<>]+$/.test(value),
  hostname: (value) =>
    value.length <= 255 &&
    /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?$/i.test(value),
  byte: (value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
};

function isCidr(value: string): boolean {
  const [address = '', length = '', ...more] = value.split('/');
  const version = isIP(address);
  return (
    more.length === 0 &&
    version !== 0 &&
    /^\d{1,3}$/.test(length) &&
    Number(length) <= (version === 4 ? 32 : 128)
  );
}

/** Does a string have this format? Formats nobody checks (upstream neither: `password` …) hold always. */
export function isFormat(format: string, value: string): boolean {
  return FORMATS[format]?.(value) ?? true;
}
