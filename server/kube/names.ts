// Name rules of k8s.io/apimachinery/pkg/util/validation and pkg/api/validate/content. Every function returns the reasons
// a value is refused, in upstream's words; an empty array means it is fine.

const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;
const DNS_1035_LABEL = '[a-z]([-a-z0-9]*[a-z0-9])?';
const LABEL_KEY_NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${LABEL_KEY_NAME})?`;
const ENV_NAME = '[-._a-zA-Z][-._a-zA-Z0-9]*';
const CONFIG_KEY = '[-._a-zA-Z0-9]+';

const MAX_LABEL_LENGTH = 63;
const MAX_SUBDOMAIN_LENGTH = 253;
const MAX_PORT_NAME_LENGTH = 15;
const MAX_GENERATED_BASE_LENGTH = 58;

const whole = (pattern: string): RegExp => new RegExp(`^${pattern}$`);
const dnsLabel = whole(DNS_LABEL);
const dnsSubdomain = whole(DNS_SUBDOMAIN);
const dns1035Label = whole(DNS_1035_LABEL);
const labelKeyName = whole(LABEL_KEY_NAME);
const labelValue = whole(LABEL_VALUE);
const envName = whole(ENV_NAME);
const configKey = whole(CONFIG_KEY);

const LABEL_CHARACTERS =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

function mismatch(rule: string, pattern: string, ...examples: string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ');
  return `${rule} (e.g. ${shown}regex used for validation is '${pattern}')`;
}

function tooManyCharacters(limit: number): string {
  return `must be no more than ${limit} characters`;
}

function tooManyBytes(limit: number): string {
  return `must be no more than ${limit} bytes`;
}

/** RFC 1123 subdomain: most object names. */
export function dnsSubdomainErrors(value: string): string[] {
  return subdomainErrors(value, tooManyCharacters);
}

function subdomainErrors(value: string, tooLong: (limit: number) => string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_SUBDOMAIN_LENGTH) errors.push(tooLong(MAX_SUBDOMAIN_LENGTH));
  if (!dnsSubdomain.test(value)) {
    const rule =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
    errors.push(mismatch(rule, DNS_SUBDOMAIN, 'example.com'));
  }
  return errors;
}

/** RFC 1123 label: namespaces, container names. */
export function dnsLabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_LABEL_LENGTH) errors.push(tooManyCharacters(MAX_LABEL_LENGTH));
  if (dnsLabel.test(value)) return errors;
  const rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  errors.push(
    dnsSubdomain.test(value) ? 'must not contain dots' : mismatch(rule, DNS_LABEL, 'my-name', '123-abc'),
  );
  return errors;
}

/** RFC 1035 label: Service names. */
export function dns1035LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_LABEL_LENGTH) errors.push(tooManyCharacters(MAX_LABEL_LENGTH));
  if (!dns1035Label.test(value)) {
    const rule =
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
    errors.push(mismatch(rule, DNS_1035_LABEL, 'my-name', 'abc-123'));
  }
  return errors;
}

/** What can stand as one segment of a request path: RBAC names and the floor for every other name. */
export function pathSegmentErrors(value: string): string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`];
  return ['/', '%'].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`);
}

/** Label values. */
export function labelValueErrors(value: string): string[] {
  const errors: string[] = [];
  if (utf8Length(value) > MAX_LABEL_LENGTH) errors.push(tooManyBytes(MAX_LABEL_LENGTH));
  if (!labelValue.test(value)) {
    const rule = `a valid label must be an empty string or consist of ${LABEL_CHARACTERS.slice('must consist of '.length)}`;
    errors.push(mismatch(rule, LABEL_VALUE, 'MyValue', 'my_value', '12345'));
  }
  return errors;
}

/** `[prefix/]name`: label keys, annotation keys (lower-cased by the caller), finalizers, taint keys, resource names. */
export function qualifiedNameErrors(value: string): string[] {
  const parts = value.split('/');
  const rule = mismatch(LABEL_CHARACTERS, LABEL_KEY_NAME, 'MyName', 'my.name', '123-abc');
  if (parts.length > 2) {
    return [
      `a valid label key ${rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  const name = parts[parts.length - 1] ?? '';
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') errors.push('prefix part must be non-empty');
    else errors.push(...subdomainErrors(prefix, tooManyBytes).map((error) => `prefix part ${error}`));
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (utf8Length(name) > MAX_LABEL_LENGTH) errors.push(`name part ${tooManyBytes(MAX_LABEL_LENGTH)}`);
  if (!labelKeyName.test(name)) errors.push(`name part ${rule}`);
  return errors;
}

/** Names of container and Service ports (IANA_SVC_NAME). */
export function portNameErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_PORT_NAME_LENGTH) errors.push(tooManyCharacters(MAX_PORT_NAME_LENGTH));
  if (!/^[-a-z0-9]+$/.test(value)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(value)) errors.push('must contain at least one letter (a-z)');
  if (value.includes('--')) errors.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

/** Names of environment variables. */
export function envVarNameErrors(value: string): string[] {
  const errors: string[] = [];
  if (!envName.test(value)) {
    const rule =
      "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit";
    errors.push(mismatch(rule, ENV_NAME, 'my.env-name', 'MY_ENV.NAME', 'MyEnvName1'));
  }
  return [...errors, ...dottedErrors(value)];
}

/** Keys of ConfigMap and Secret data. */
export function configMapKeyErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_SUBDOMAIN_LENGTH) errors.push(tooManyCharacters(MAX_SUBDOMAIN_LENGTH));
  if (!configKey.test(value)) {
    const rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
    errors.push(mismatch(rule, CONFIG_KEY, 'key.name', 'KEY_NAME', 'key-name'));
  }
  return [...errors, ...dottedErrors(value)];
}

/** Names that would escape a directory. */
function dottedErrors(value: string): string[] {
  if (value === '.') return ["must not be '.'"];
  if (value === '..') return ["must not be '..'"];
  return value.startsWith('..') ? ["must not start with '..'"] : [];
}

/**
 * The name made for `generateName`: the base cut to 58 characters, then the suffix (five characters upstream).
 * Models k8s.io/apiserver/pkg/storage/names.
 */
export function generateName(base: string, suffix: string): string {
  return base.slice(0, MAX_GENERATED_BASE_LENGTH) + suffix;
}

function utf8Length(value: string): number {
  let length = 0;
  for (const character of value) {
    const point = character.codePointAt(0) ?? 0;
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return length;
}
