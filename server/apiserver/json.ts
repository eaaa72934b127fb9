/** A private copy of JSON data; undefined members are left out. */
export function cloneJson<T>(value: T): T {
  return cloneValue(value) as T;
}

function cloneValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const copy: unknown[] = new Array<unknown>(value.length);
    for (let i = 0; i < value.length; i++) copy[i] = cloneValue(value[i]);
    return copy;
  }
  const copy: Record<string, unknown> = {};
  const source = value as Record<string, unknown>;
  for (const key of Object.keys(source)) {
    const member = source[key];
    if (member !== undefined) setMember(copy, key, typeof member === 'object' ? cloneValue(member) : member);
  }
  return copy;
}

/** Sets a member also when it is named `__proto__`, as plain data. */
export function setMember(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else target[key] = value;
}

/**
 * Freezes JSON data in place, all the way down, dropping undefined members first: what readers share looks exactly as
 * if it had been parsed from its bytes. Stops at what is already frozen. Returns its argument.
 */
export function freezeJson<T>(value: T): T {
  freezeValue(value);
  return value;
}

function freezeValue(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') freezeValue(item);
  } else {
    const object = value as Record<string, unknown>;
    for (const key of Object.keys(object)) {
      const member = object[key];
      if (member === undefined) delete object[key];
      else if (typeof member === 'object') freezeValue(member);
    }
  }
  Object.freeze(value);
}

/** A value from outside as text for a message: strings as they are, anything else as JSON. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
