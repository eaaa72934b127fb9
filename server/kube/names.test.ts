import { describe, expect, it } from 'vitest';
import { resolveIntOrPercent } from './int-or-string.ts';
import {
  configMapKeyErrors,
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  envVarNameErrors,
  generateName,
  labelValueErrors,
  pathSegmentErrors,
  portNameErrors,
  qualifiedNameErrors,
} from './names.ts';

describe('names', () => {
  it.each([
    [dnsSubdomainErrors, 'a.b-c.d'],
    [dnsLabelErrors, 'a-1'],
    [dns1035LabelErrors, 'a-1'],
    [pathSegmentErrors, 'system:node:a'],
    [labelValueErrors, ''],
    [qualifiedNameErrors, 'example.com/My_Name.1'],
    [portNameErrors, 'http-2'],
    [envVarNameErrors, 'my.VAR_1'],
    [configMapKeyErrors, '.dockerconfigjson'],
  ])('%o accepts %j', (errors, value) => {
    expect(errors(value)).toEqual([]);
  });

  it('says in upstream’s words what is wrong', () => {
    expect(dnsLabelErrors('a.b')).toEqual(['must not contain dots']);
    expect(dnsLabelErrors('A')).toEqual([
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ]);
    expect(dnsSubdomainErrors('a_b')).toEqual([
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ]);
    expect(dnsSubdomainErrors('a'.repeat(254))).toEqual(['must be no more than 253 characters']);
    expect(labelValueErrors('a'.repeat(64))).toEqual(['must be no more than 63 bytes']);
    expect(pathSegmentErrors('a/b%')).toEqual(["may not contain '/'", "may not contain '%'"]);
    expect(pathSegmentErrors('..')).toEqual(["may not be '..'"]);
    expect(qualifiedNameErrors('/a')).toEqual(['prefix part must be non-empty']);
    expect(portNameErrors('-8-')).toEqual([
      'must contain at least one letter (a-z)',
      'must not begin or end with a hyphen',
    ]);
  });

  it('leave room for a suffix', () => {
    expect(generateName('web-', 'x7k2p')).toBe('web-x7k2p');
    expect(generateName('a'.repeat(70), 'x7k2p')).toBe(`${'a'.repeat(58)}x7k2p`);
  });
});

describe('resolveIntOrPercent', () => {
  it('takes numbers as they are and shares rounded as asked', () => {
    expect(resolveIntOrPercent(3, 10, true)).toBe(3);
    expect([resolveIntOrPercent('25%', 10, true), resolveIntOrPercent('25%', 10, false)]).toEqual([3, 2]);
  });

  it('refuses strings that are no percentage', () => {
    expect(() => resolveIntOrPercent('3', 10, true)).toThrow(
      'invalid value for IntOrString: invalid type: string is not a percentage',
    );
  });
});
