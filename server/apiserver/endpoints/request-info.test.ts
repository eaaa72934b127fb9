import { expect, it } from 'vitest';
import { PathError, requestInfo } from './request-info.ts';

const rows: [string, string, string | undefined][] = [
  ['GET', '/api/v1/pods', 'list /v1 pods'],
  ['GET', '/api/v1/namespaces', 'list /v1 namespaces'],
  ['GET', '/api/v1/namespaces/a', 'get /v1 namespaces name=a'],
  ['PUT', '/api/v1/namespaces/a/finalize', 'update /v1 namespaces name=a sub=finalize'],
  ['GET', '/api/v1/namespaces/a/pods', 'list /v1 pods ns=a'],
  ['GET', '/api/v1/namespaces/a/pods?watch=true', 'watch /v1 pods ns=a'],
  ['GET', '/api/v1/namespaces/a/pods?watch=0', 'list /v1 pods ns=a'],
  ['GET', '/api/v1/watch/namespaces/a/pods/p', 'watch /v1 pods ns=a name=p'],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Dp', 'list /v1 pods name=p'],
  ['GET', '/api/v1/namespaces/a/pods/p/log', 'get /v1 pods ns=a name=p sub=log'],
  ['POST', '/apis/apps/v1/namespaces/a/deployments', 'create apps/v1 deployments ns=a'],
  [
    'PATCH',
    '/apis/apps/v1/namespaces/a/deployments/d/scale',
    'patch apps/v1 deployments ns=a name=d sub=scale',
  ],
  ['DELETE', '/api/v1/namespaces/a/pods', 'deletecollection /v1 pods ns=a'],
  ['DELETE', '/api/v1/namespaces/a/pods/p', 'delete /v1 pods ns=a name=p'],
  ['HEAD', '/api/v1/nodes/system%3An', 'get /v1 nodes name=system:n'],
  ['GET', '/api', undefined],
  ['GET', '/apis/apps/v1', undefined],
  ['GET', '/version', undefined],
];

it.each(rows)('%s %s is %s', (method, url, expected) => {
  const { resource } = requestInfo(method, url);
  const text =
    resource &&
    `${resource.verb} ${resource.group}/${resource.version} ${resource.plural}` +
      (resource.namespace === undefined ? '' : ` ns=${resource.namespace}`) +
      (resource.name === undefined ? '' : ` name=${resource.name}`) +
      (resource.subresource === undefined ? '' : ` sub=${resource.subresource}`);
  expect(text).toBe(expected);
});

it('refuses what cannot be decoded', () => {
  expect(() => requestInfo('GET', '/api/v1/pods/%zz')).toThrow(PathError);
  expect(() => requestInfo('GET', `/${'x'.repeat(10_000)}`)).toThrow(PathError);
});
