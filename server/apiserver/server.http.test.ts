import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMaps, deployments, serviceAccounts } from '#server/kube';
import { listen, type TestListener } from './testing/listen.ts';
import { configMap } from './testing/objects.ts';
import { startTestServer, type TestServer } from './testing/server.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const COLLECTION = '/api/v1/namespaces/default/configmaps';

let t: TestServer;
let http: TestListener;

beforeEach(async () => {
  t = await startTestServer();
  http = await listen(t.server, await adminToken(t));
});

afterEach(async () => {
  await http.close();
  await t.close();
});

/** A service account bound to cluster-admin. */
async function adminToken(server: TestServer): Promise<string> {
  await server.admin.create(serviceAccounts, { metadata: { name: 'root', namespace: 'kube-system' } });
  const bindings = {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: 'ClusterRoleBinding',
    plural: 'clusterrolebindings',
    namespaced: false,
  };
  await server.admin.create(bindings, {
    metadata: { name: 'root' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'root', namespace: 'kube-system' }],
  } as never);
  const answer = await server.admin.createSubresource<never>(
    serviceAccounts,
    { namespace: 'kube-system', name: 'root' },
    'token',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { name: 'root' } },
  );
  return (answer as { status: { token: string } }).status.token;
}

describe('who asks', () => {
  it('nobody is anonymous, and may see little', async () => {
    const reply = await http.send('GET', COLLECTION, { token: ' ' });
    expect([reply.code, reply.json().message]).toEqual([
      403,
      'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default"',
    ]);
    expect((await http.send('GET', '/readyz', { token: ' ' })).text).toBe('ok');
    expect((await http.send('GET', '/apis', { token: ' ' })).json().message).toBe(
      'forbidden: User "system:anonymous" cannot get path "/apis"',
    );
  });

  it('a bad token is nobody', async () => {
    const reply = await http.send('GET', '/version', { token: 'x.y.z' });
    expect([reply.code, reply.json()]).toEqual([
      401,
      {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'Unauthorized',
        reason: 'Unauthorized',
        code: 401,
      },
    ]);
  });

  it('acts as another where it may, and only there', async () => {
    const as = { 'impersonate-user': 'jane', 'impersonate-group': 'team' };
    const review = await http.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      headers: as,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    expect(review.json().status.userInfo).toEqual({
      username: 'jane',
      groups: ['team', 'system:authenticated'],
    });
    const refused = await http.send('GET', COLLECTION, { headers: as, token: ' ' });
    expect(refused.json().message).toBe(
      'users "jane" is forbidden: User "system:anonymous" cannot impersonate resource "users" in API group "" at the cluster scope',
    );
  });
});

describe('bodies', () => {
  const post = (body: string | Uint8Array | object, contentType = 'application/json', query = '') =>
    http.send('POST', `${COLLECTION}${query}`, { body, headers: { 'content-type': contentType } });

  it('may be YAML', async () => {
    const reply = await post('kind: ConfigMap\nmetadata:\n  name: y\ndata: {a: "1"}\n', 'application/yaml');
    expect([reply.code, reply.json().data]).toEqual([201, { a: '1' }]);
  });

  it.each([
    ['{', "couldn't get version/kind; json parse error: unexpected end of JSON input ({)"],
    [
      '{"a":x}',
      "couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of value ({\"a\":x})",
    ],
  ])('%s is refused in Go words', async (body, text) => {
    const reply = await post(body);
    expect([reply.code, reply.json().message]).toEqual([
      400,
      `the object provided is unrecognized (must be of type ConfigMap): ${text}`,
    ]);
  });

  it('of wrong types, kinds or versions are refused', async () => {
    expect((await post({ kind: 'Secret', metadata: { name: 'x' } })).code).toBe(400);
    expect(
      (await post({ apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: 'x' } })).json().message,
    ).toBe('the API version in the data (v2) does not match the expected API version (v1)');
    expect((await post({ metadata: { name: 'x' }, data: { a: 1 } })).json().message).toContain(
      'json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    );
    expect((await post({ metadata: { name: 'x', labels: [] } })).code).toBe(400);
    expect((await post('[]')).code).toBe(400);
    expect((await post('x', 'text/plain')).json()).toMatchObject({
      code: 415,
      reason: 'UnsupportedMediaType',
      message:
        'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    });
  });

  it('larger than 3 MiB are refused', async () => {
    const reply = await post({ metadata: { name: 'x' }, data: { a: 'x'.repeat(3 * 1024 * 1024) } });
    expect([reply.code, reply.json().message]).toEqual([413, 'Request entity too large: limit is 3145728']);
    // Many times what the connection buffers: the client is still sending when the answer comes.
    const huge = await post('x'.repeat(40 * 1024 * 1024));
    expect(huge.code).toBe(413);
  });

  it('have unknown and repeated fields refused, warned of, or ignored', async () => {
    const body = '{"metadata":{"name":"f"},"data":{"a":"1","a":"2"},"foo":1}';
    const strict = await post(body, 'application/json', '?fieldValidation=Strict');
    expect([strict.code, strict.json().message]).toEqual([
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.a", unknown field "foo"',
    ]);
    const warned = await post(body);
    expect([warned.code, warned.headers.warning]).toEqual([
      201,
      '299 - "duplicate field \\"data.a\\"", 299 - "unknown field \\"foo\\""',
    ]);
    expect(warned.json().foo).toBeUndefined();
    const ignored = await post(body.replace('"f"', '"g"'), 'application/json', '?fieldValidation=Ignore');
    expect([ignored.code, ignored.headers.warning]).toEqual([201, undefined]);
  });
});

describe('answers', () => {
  it('are the stored bytes, lists without the type of each item', async () => {
    const made = await t.admin.create(configMaps, configMap('a', { x: '1' }));
    const one = await http.send('GET', `${COLLECTION}/a`);
    expect(one.json()).toEqual(made);
    const { apiVersion: _a, kind: _k, ...item } = made;
    expect((await http.send('GET', COLLECTION)).json()).toEqual({
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: String(t.store.revision) },
      items: [item],
    });
  });

  it('may be tables, metadata alone, or YAML', async () => {
    await t.admin.create(configMaps, configMap('a', { x: '1' }));
    const table = (await http.send('GET', COLLECTION, { headers: { accept: TABLE } })).json();
    expect(table).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: String(t.store.revision) },
    });
    expect(table.columnDefinitions.map((column: { name: string }) => column.name)).toEqual([
      'Name',
      'Data',
      'Age',
    ]);
    expect(table.rows).toMatchObject([
      {
        cells: ['a', 1, expect.any(String)],
        object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } },
      },
    ]);
    const partial = (
      await http.send('GET', COLLECTION, {
        headers: { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' },
      })
    ).json();
    expect([partial.kind, partial.items[0].kind, partial.items[0].data]).toEqual([
      'PartialObjectMetadataList',
      'PartialObjectMetadata',
      undefined,
    ]);
    expect(
      (await http.send('GET', `${COLLECTION}/a`, { headers: { accept: 'application/yaml' } })).text,
    ).toContain('name: a\n');
  });

  it('in protobuf alone are not offered', async () => {
    const reply = await http.send('GET', COLLECTION, {
      headers: { accept: 'application/vnd.kubernetes.protobuf' },
    });
    expect([reply.code, reply.json().reason]).toEqual([406, 'NotAcceptable']);
  });

  it('of OpenAPI v2 are a bare document, which is all kubectl needs to go on', async () => {
    const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
    const reply = await http.send('GET', '/openapi/v2', { headers: { accept } });
    expect([reply.code, reply.headers['content-type']]).toEqual([200, accept.replace('@', '.')]);
    expect(reply.body.toString('latin1')).toBe('\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.3B\x00');
    expect((await http.send('GET', '/openapi/v2')).json()).toEqual({
      swagger: '2.0',
      info: { title: 'Kubernetes', version: 'v1.36.3' },
      paths: {},
    });
  });

  it('are compressed when large', async () => {
    await t.admin.create(configMaps, configMap('big', { x: 'y'.repeat(200_000) }));
    const { headers, body } = await http.send('GET', `${COLLECTION}/big`, {
      headers: { 'accept-encoding': 'gzip' },
    });
    expect(headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(body).toString()).data.x).toHaveLength(200_000);
  });

  it('to paths that do not exist are plain', async () => {
    for (const path of [
      '/nope',
      '/api/v1/foos',
      '/apis/apps/v1/foos',
      '/apis/no.such/v1',
      '/api/v1/namespaces/default/nodes',
      `${COLLECTION}/a/nope`,
    ]) {
      const reply = await http.send('GET', path);
      expect([path, reply.code, reply.text]).toEqual([path, 404, '404 page not found\n']);
    }
    expect((await http.send('GET', `${COLLECTION}/missing`)).json()).toMatchObject({
      code: 404,
      message: 'configmaps "missing" not found',
    });
  });

  it('to methods that do not fit are 405', async () => {
    expect((await http.send('POST', `${COLLECTION}/a`, { body: {} })).code).toBe(405);
    expect((await http.send('OPTIONS', COLLECTION)).code).toBe(405);
    expect((await http.send('HEAD', '/version')).text).toBe('');
  });

  it('to a delete are Status or object', async () => {
    await t.admin.create(configMaps, configMap('a'));
    const reply = await http.send('DELETE', `${COLLECTION}/a`, { body: { propagationPolicy: 'Background' } });
    expect([reply.code, reply.json().status]).toEqual([200, 'Success']);
    expect((await http.send('DELETE', `${COLLECTION}/a?propagationPolicy=Odd`)).json()).toMatchObject({
      code: 422,
    });
  });
});

describe('patches over HTTP', () => {
  it('go by their media type', async () => {
    await t.admin.create(configMaps, configMap('a', { x: '1' }));
    const patch = (type: string, body: unknown, query = '') =>
      http.send('PATCH', `${COLLECTION}/a${query}`, {
        body: JSON.stringify(body),
        headers: { 'content-type': type },
      });
    expect(
      (await patch('application/json-patch+json', [{ op: 'add', path: '/data/y', value: '2' }])).json().data,
    ).toEqual({ x: '1', y: '2' });
    expect((await patch('application/merge-patch+json', { data: { x: null } })).json().data).toEqual({
      y: '2',
    });
    expect((await patch('application/strategic-merge-patch+json', { data: { z: '3' } })).json().data).toEqual(
      { y: '2', z: '3' },
    );
    const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { q: '4' } };
    expect((await patch('application/apply-patch+yaml', applied, '?fieldManager=me')).json().data.q).toBe(
      '4',
    );
    expect((await patch('application/apply-patch+yaml', applied)).json().message).toContain(
      'fieldManager: Required value: is required for apply patch',
    );
    expect((await patch('application/json', {})).code).toBe(415);
    expect(
      (
        await patch('application/merge-patch+json', { data: { x: '1' }, foo: 1 }, '?fieldValidation=Strict')
      ).json().message,
    ).toContain('strict decoding error: unknown field "foo"');
  });
});

describe('watches over HTTP', () => {
  it('write a line per event, tables with columns once', async () => {
    await t.admin.create(configMaps, configMap('a'));
    const plain = http.stream(`${COLLECTION}?watch=true&resourceVersion=0`);
    const table = http.stream(`${COLLECTION}?watch=1`, { headers: { accept: TABLE } });
    expect((await plain.next(1))[0]).toMatchObject({
      type: 'ADDED',
      object: { kind: 'ConfigMap', metadata: { name: 'a' } },
    });
    const [first] = await table.next(1);
    await t.admin.create(configMaps, configMap('b'));
    const [second] = await table.next(1);
    expect([first.object.columnDefinitions.length, second.object.columnDefinitions]).toEqual([3, null]);
    expect(second.object.rows[0].cells[0]).toBe('b');
    expect((await plain.next(1))[0]).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
    plain.stop();
    table.stop();
  });

  it('serve the deprecated path, and end with the server', async () => {
    const stream = http.stream('/api/v1/watch/namespaces/default/configmaps/a');
    await t.admin.create(configMaps, configMap('b'));
    await t.admin.create(configMaps, configMap('a'));
    expect((await stream.next(1))[0].object.metadata.name).toBe('a');
    await t.server.close();
    await stream.ended;
  });

  it('tell a forgotten revision as an ERROR event', async () => {
    await t.admin.create(configMaps, configMap('a'));
    t.store.compact(t.store.revision);
    const stream = http.stream(`${COLLECTION}?watch=true&resourceVersion=1`);
    expect((await stream.next(1))[0]).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    });
    await stream.ended;
  });

  it('drop a reader that does not read', async () => {
    const stream = http.stream(`${COLLECTION}?watch=true`);
    await t.admin.create(configMaps, configMap('a'));
    await stream.next(1);
    stream.paused();
    for (let i = 0; i < 40; i++)
      await t.admin.create(configMaps, configMap(`big-${i}`, { x: 'y'.repeat(900_000) }));
    await expect
      .poll(() => t.server.audit.recent().filter(({ verb }) => verb === 'watch').length)
      .toBeGreaterThan(0);
    stream.stop();
  });
});

describe('discovery', () => {
  it('tells all at once, and nothing when nothing changed', async () => {
    const headers = {
      accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json',
    };
    const reply = await http.send('GET', '/apis', { headers });
    expect(reply.headers['content-type']).toBe(
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    );
    const apps = reply
      .json()
      .items.find((item: { metadata: { name?: string } }) => item.metadata.name === 'apps');
    const found = apps.versions[0].resources.find(
      (one: { resource: string }) => one.resource === 'deployments',
    );
    expect(found).toMatchObject({
      responseKind: { group: 'apps', version: 'v1', kind: 'Deployment' },
      scope: 'Namespaced',
      shortNames: ['deploy'],
      subresources: [
        { subresource: 'scale', responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' } },
        { subresource: 'status', responseKind: { group: 'apps', version: 'v1', kind: 'Deployment' } },
      ],
    });
    const again = await http.send('GET', '/apis', {
      headers: { ...headers, 'if-none-match': String(reply.headers.etag) },
    });
    expect([again.code, again.text]).toEqual([304, '']);
  });

  it('has the plain forms too', async () => {
    expect((await http.send('GET', '/version')).json().gitVersion).toBe('v1.36.3');
    expect((await http.send('GET', '/api')).json().versions).toEqual(['v1']);
    const listed = (await http.send('GET', '/apis/apps/v1')).json();
    expect(listed.resources.map((one: { name: string }) => one.name)).toContain('deployments/scale');
    expect((await http.send('GET', '/readyz?verbose')).text).toContain('[+]etcd ok\n');
    expect((await http.send('GET', '/livez/ping')).text).toBe('ok');
  });

  it('serves OpenAPI to be kept', async () => {
    const index = (await http.send('GET', '/openapi/v3')).json();
    const url: string = index.paths['apis/apps/v1'].serverRelativeURL;
    const reply = await http.send('GET', url);
    expect(reply.headers).toMatchObject({
      'cache-control': 'public, immutable',
      vary: 'Accept',
      etag: expect.any(String),
    });
    expect(reply.json().components.schemas['io.k8s.api.apps.v1.Deployment']).toBeDefined();
  });
});

describe('anything malformed', () => {
  it.each([
    'GET /%zz HTTP/1.1\r\nhost: a\r\n\r\n',
    'GET /api/v1/namespaces/%2e%2e%2f/pods/%00 HTTP/1.1\r\nhost: a\r\n\r\n',
    'BREW / HTTP/1.1\r\n\r\n',
  ])('%j gets an answer', async (text) => {
    const reply = await new Promise<string>((resolve) => {
      const socket = connect(http.port, '127.0.0.1', () => socket.write(text));
      socket.once('data', (data) => {
        resolve(data.toString());
        socket.destroy();
      });
      socket.once('close', () => resolve(''));
    });
    expect(reply).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect((await http.send('GET', '/readyz')).code).toBe(200);
  });
});

it('finds a scale with curl in hand', async () => {
  await t.admin.create(deployments, {
    metadata: { name: 'd', namespace: 'default' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  } as never);
  const reply = await http.send('GET', '/apis/apps/v1/namespaces/default/deployments/d/scale', {
    headers: { 'user-agent': 'curl/8' },
  });
  expect(reply.text).toContain('\n  "kind": "Scale"');
});
