/* eslint-disable @typescript-eslint/no-explicit-any -- answers are read as whatever they are */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMaps, isExpired, nodes, StatusError } from '#server/kube';
import { configMap } from './testing/objects.ts';
import { ADMIN, startTestServer, type TestServer } from './testing/server.ts';

let t: TestServer;

beforeEach(async () => {
  t = await startTestServer();
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    await t.admin.create(configMaps, configMap(name, {}, { odd: String('ace'.includes(name)) }));
  }
});

afterEach(async () => {
  await t.close();
});

const list = (query: Record<string, string>): Promise<any> =>
  t.server.backend.request({
    user: ADMIN,
    userAgent: 'test',
    verb: 'list',
    resource: { group: '', version: 'v1', plural: 'configmaps' },
    namespace: 'default',
    query,
  });

const names = (answer: any): string[] => answer.items.map((one: any) => one.metadata.name);

async function failed(promise: Promise<unknown>): Promise<StatusError> {
  const error: unknown = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof StatusError)) throw new TypeError(`not refused: ${String(error)}`);
  return error;
}

describe('pages', () => {
  it('show one revision, whatever is written meanwhile', async () => {
    const first = await list({ limit: '2' });
    expect(names(first)).toEqual(['a', 'b']);
    expect(first.metadata.remainingItemCount).toBe(3);
    await t.admin.create(configMaps, configMap('bb'));
    await t.admin.delete(configMaps, { namespace: 'default', name: 'd' });
    const second = await list({ limit: '2', continue: first.metadata.continue });
    expect(names(second)).toEqual(['c', 'd']);
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    const third = await list({ limit: '2', continue: second.metadata.continue });
    expect(names(third)).toEqual(['e']);
    expect(third.metadata.continue).toBeUndefined();
  });

  it('are filled although a selector leaves some out', async () => {
    const first = await list({ limit: '2', labelSelector: 'odd=true' });
    expect(names(first)).toEqual(['a', 'c']);
    expect(first.metadata.remainingItemCount).toBeUndefined();
    expect(
      names(await list({ limit: '2', labelSelector: 'odd=true', continue: first.metadata.continue })),
    ).toEqual(['e']);
  });

  it('end with 410 and a way to go on when the revision is forgotten', async () => {
    const first = await list({ limit: '2' });
    await t.admin.create(configMaps, configMap('cc'));
    t.store.compact(t.store.revision);
    const error = await failed(list({ limit: '2', continue: first.metadata.continue }));
    expect(isExpired(error)).toBe(true);
    expect(error.message).toMatch(
      /^The provided continue parameter is too old to display a consistent list result\./,
    );
    const onward = String(error.status.metadata.continue);
    expect(names(await list({ continue: onward }))).toEqual(['c', 'cc', 'd', 'e']);
  });

  it.each(['!', 'e30', Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}').toString('base64url')])(
    'refuse the token %s',
    async (token) => {
      expect((await failed(list({ continue: token }))).code).toBe(400);
    },
  );
});

describe('selectors', () => {
  it.each([
    [{ fieldSelector: 'metadata.name=b' }, ['b']],
    [{ fieldSelector: 'metadata.name!=b,metadata.namespace=default' }, ['a', 'c', 'd', 'e']],
    [{ fieldSelector: 'metadata.namespace=other' }, []],
    [{ labelSelector: 'odd in (true)', fieldSelector: 'metadata.name!=a' }, ['c', 'e']],
  ])('%j', async (query, expected) => {
    expect(names(await list(query as Record<string, string>))).toEqual(expected);
  });

  it('name what they do not know', async () => {
    expect((await failed(list({ fieldSelector: 'data.x=1' }))).status).toMatchObject({
      code: 400,
      message: '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    });
    expect((await failed(t.admin.list(nodes, { fieldSelector: 'a=b' }))).message).toBe(
      'field label not supported: a',
    );
    expect((await failed(list({ labelSelector: 'a=(' }))).code).toBe(400);
  });
});

describe('resourceVersion', () => {
  it('asks for the past exactly, or for anything not older', async () => {
    const revision = t.store.revision;
    await t.admin.create(configMaps, configMap('f'));
    const past = await list({ resourceVersion: String(revision), resourceVersionMatch: 'Exact' });
    expect(names(past)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(past.metadata.resourceVersion).toBe(String(revision));
    expect(names(await list({ resourceVersion: String(revision) }))).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('of the future is told so', async () => {
    const future = String(t.store.revision + 10);
    expect((await failed(list({ resourceVersion: future }))).status).toMatchObject({
      code: 504,
      reason: 'Timeout',
      message: `Timeout: Too large resource version: ${future}, current: ${t.store.revision}`,
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      },
    });
  });

  it('match rules are checked', async () => {
    expect((await failed(list({ resourceVersionMatch: 'Exact' }))).message).toContain(
      'resourceVersionMatch is forbidden unless resourceVersion is provided',
    );
  });
});
