import {
  type ConfigMap,
  configMapKeyErrors,
  deepEqual,
  type FieldError,
  type Secret,
  type UnstructuredObject,
} from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { eachInvalid, forbiddenField, IMMUTABLE, invalidValue, required, tooLong } from './field-errors.ts';

const MAX_BYTES = 1024 * 1024;
const FROZEN = 'field is immutable when `immutable` is set';
const REDACTED = '<secret contents redacted>';

function keyErrors(map: Record<string, string> | undefined, field: string): FieldError[] {
  return Object.keys(map ?? {}).flatMap((key) =>
    eachInvalid(`${field}[${key}]`, key, configMapKeyErrors(key)),
  );
}

/** How many bytes a base64 text stands for. */
function decodedLength(text: string): number {
  return Buffer.byteLength(text, 'base64');
}

/** Models ValidateConfigMap. */
function configMapErrors(map: ConfigMap): FieldError[] {
  const errors = keyErrors(map.data, 'data');
  let size = 0;
  for (const [key, value] of Object.entries(map.data ?? {})) {
    size += Buffer.byteLength(value);
    if (map.binaryData && key in map.binaryData) {
      errors.push(invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'));
    }
  }
  errors.push(...keyErrors(map.binaryData, 'binaryData'));
  for (const value of Object.values(map.binaryData ?? {})) size += decodedLength(value);
  if (size > MAX_BYTES) errors.push(tooLong('[]', MAX_BYTES));
  return errors;
}

/** Once `immutable`, neither the contents nor the mark change. */
function frozenErrors(
  next: ConfigMap | Secret,
  old: ConfigMap | Secret,
  contents: readonly string[],
): FieldError[] {
  if (!old.immutable) return [];
  const errors: FieldError[] = [];
  if (!next.immutable) errors.push(forbiddenField('immutable', FROZEN));
  const [after, before] = [as<UnstructuredObject>(next), as<UnstructuredObject>(old)];
  for (const member of contents) {
    if (!deepEqual(after[member] ?? {}, before[member] ?? {})) errors.push(forbiddenField(member, FROZEN));
  }
  return errors;
}

export const configMapStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  validate: (object) => configMapErrors(as<ConfigMap>(object)),
  validateUpdate(object, old) {
    const map = as<ConfigMap>(object);
    return [...frozenErrors(map, as<ConfigMap>(old), ['data', 'binaryData']), ...configMapErrors(map)];
  },
};

function jsonErrors(secret: Secret, key: string): FieldError[] {
  const value = secret.data?.[key];
  const field = `data[${key}]`;
  if (value === undefined) return [required(field)];
  try {
    JSON.parse(Buffer.from(value, 'base64').toString('utf8'));
    return [];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [invalidValue(field, REDACTED, error.message)];
  }
}

/** What each well-known type must hold. */
function typeErrors(secret: Secret): FieldError[] {
  const has = (key: string): boolean => secret.data?.[key] !== undefined;
  const account = 'kubernetes.io/service-account.name';
  switch (secret.type) {
    case 'kubernetes.io/service-account-token':
      return secret.metadata.annotations?.[account] ? [] : [required(`metadata.annotations[${account}]`)];
    case 'kubernetes.io/dockercfg':
      return jsonErrors(secret, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return jsonErrors(secret, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth':
      return has('username') || has('password')
        ? []
        : [required('data[username]'), required('data[password]')];
    case 'kubernetes.io/ssh-auth':
      return has('ssh-privatekey') ? [] : [required('data[ssh-privatekey]')];
    case 'kubernetes.io/tls':
      return ['tls.crt', 'tls.key'].filter((key) => !has(key)).map((key) => required(`data[${key}]`));
    default:
      return [];
  }
}

/** Models ValidateSecret. */
function secretErrors(secret: Secret): FieldError[] {
  const errors = keyErrors(secret.data, 'data');
  const size = Object.values(secret.data ?? {}).reduce((sum, value) => sum + decodedLength(value), 0);
  if (size > MAX_BYTES) errors.push(tooLong('data', MAX_BYTES));
  return [...errors, ...typeErrors(secret)];
}

export const secretStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    const secret = as<Secret>(object);
    if (secret.stringData) {
      const plain = Object.entries(secret.stringData).map(([key, text]) => [
        key,
        Buffer.from(text).toString('base64'),
      ]);
      secret.data = { ...secret.data, ...(Object.fromEntries(plain) as Record<string, string>) };
      delete secret.stringData;
    }
    secret.type ||= 'Opaque';
  },
  validate: (object) => secretErrors(as<Secret>(object)),
  validateUpdate(object, old) {
    const [secret, before] = [as<Secret>(object), as<Secret>(old)];
    const errors: FieldError[] = [];
    if (secret.type !== before.type) errors.push(invalidValue('type', secret.type, IMMUTABLE));
    return [...errors, ...frozenErrors(secret, before, ['data']), ...secretErrors(secret)];
  },
};

export const serviceAccountStrategy: Strategy = { allowUnconditionalUpdate: true };
