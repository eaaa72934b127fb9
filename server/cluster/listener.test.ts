import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitPath } from './listener.ts';

describe('splitPath', () => {
  it.each([
    ['/clusters/management/api/v1/pods?limit=5', { cluster: 'management', rest: '/api/v1/pods?limit=5' }],
    ['/clusters/management', { cluster: 'management', rest: '/' }],
    ['/clusters/handson-a/tenant-x/version', { cluster: 'handson-a/tenant-x', rest: '/version' }],
    ['/clusters/handson-a/tenant-x', { cluster: 'handson-a/tenant-x', rest: '/' }],
    ['/clusters/handson-a', undefined],
    ['/api/v1/pods', undefined],
    ['/clusters/a/b/../c/api', undefined],
    ['/clusters/a/b/%2e%2e/c/api', undefined],
    ['/clusters/../management/api', undefined],
    ['/clusters/%6danagement/api', undefined],
    ['/clusters//b/api', undefined],
    ['/clusters/a%2fb/c/api', undefined],
    ['https://elsewhere/clusters/management/api', undefined],
  ])('%s', (url, want) => {
    expect(splitPath(url)).toEqual(want);
  });

  it('never hands on a path that climbs', () => {
    const segment = fc.constantFrom('a', 'management', '..', '.', '%2e', '%2E%2e', '', 'api', 'A', 'x%2fy');
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), (segments) => {
        const split = splitPath(`/clusters/${segments.join('/')}`);
        if (!split) return;
        expect(split.cluster).toMatch(/^(management|[a-z0-9-]+\/[a-z0-9-]+)$/);
        expect(split.rest.split('/').some((part) => /^(\.|%2e)+$/i.test(part))).toBe(false);
      }),
    );
  });
});
