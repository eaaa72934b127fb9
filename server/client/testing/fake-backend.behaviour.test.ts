import { describe, expect, it } from 'vitest';
import { configMaps, nodes, type Pod, pods } from '#server/kube';
import { createFakeBackend } from './index.ts';

const ref = { namespace: 'n', name: 'p' };
const draft = { metadata: ref, spec: { containers: [{ name: 'c', image: 'nginx' }] } };

describe('fake backend', () => {
  it('gives objects what a server gives them', async () => {
    const client = createFakeBackend().client();
    const pod = await client.create(pods, { ...draft, metadata: { namespace: 'n', generateName: 'web-' } });
    expect(pod.metadata).toMatchObject({
      generation: 1,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      namespace: 'n',
    });
    expect(pod.metadata.name).toMatch(/^web-[a-z0-9]{5}$/);
    expect(pod.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect([pod.apiVersion, pod.kind]).toEqual(['v1', 'Pod']);
  });

  it('refuses in Kubernetes’ words', async () => {
    const client = createFakeBackend().client();
    const pod = await client.create(pods, draft);
    await expect(client.get(pods, { namespace: 'n', name: 'x' })).rejects.toThrow('pods "x" not found');
    await expect(client.create(pods, draft)).rejects.toThrow('pods "p" already exists');
    await client.patch(pods, ref, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } });
    await expect(client.update(pods, pod)).rejects.toMatchObject({ reason: 'Conflict' });
    await expect(client.delete(pods, ref, { preconditions: { uid: 'other' } })).rejects.toMatchObject({
      code: 409,
    });
    await expect(client.list(pods, { labelSelector: '!!' })).rejects.toMatchObject({ code: 400 });
  });

  it('keeps status and everything else apart, counts generations, and ignores writes that change nothing', async () => {
    const client = createFakeBackend().client();
    await client.create(pods, draft);
    const status: Partial<Pod> = { status: { phase: 'Running' }, spec: { containers: [], nodeName: 'x' } };
    const afterStatus = await client.patch(
      pods,
      ref,
      { type: 'merge', body: status },
      { subresource: 'status' },
    );
    expect([afterStatus.status, afterStatus.spec, afterStatus.metadata.generation]).toEqual([
      { phase: 'Running' },
      draft.spec,
      1,
    ]);
    const afterSpec = await client.patch(pods, ref, {
      type: 'strategic',
      body: { spec: { containers: [{ name: 'd' }] }, status: { phase: 'Failed' } },
    });
    expect([
      afterSpec.status,
      afterSpec.metadata.generation,
      afterSpec.spec?.containers.map((one) => one.name).sort(),
    ]).toEqual([{ phase: 'Running' }, 2, ['c', 'd']]);
    expect(await client.update(pods, afterSpec)).toBe(afterSpec);
    const dry = await client.patch(
      pods,
      ref,
      { type: 'json', body: [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }] },
      { dryRun: true },
    );
    expect([dry.metadata.labels, (await client.get(pods, ref)).metadata.labels]).toEqual([
      { a: 'b' },
      undefined,
    ]);
  });

  it('selects by labels and fields', async () => {
    const client = createFakeBackend().client();
    await client.create(pods, draft);
    await client.create(pods, {
      metadata: { namespace: 'm', name: 'q', labels: { app: 'a' } },
      spec: { containers: [], nodeName: 'node-1' },
    });
    const names = async (query: object): Promise<string[]> =>
      (await client.list(pods, query)).items.map((pod) => pod.metadata.name);
    expect(await names({})).toEqual(['q', 'p']);
    expect(await names({ namespace: 'n' })).toEqual(['p']);
    expect(await names({ labelSelector: 'app in (a,b)' })).toEqual(['q']);
    expect(await names({ fieldSelector: 'spec.nodeName=node-1,metadata.name!=x' })).toEqual(['q']);
    expect(await names({ fieldSelector: 'spec.nodeName=' })).toEqual(['p']);
  });

  it('deletes when the finalizers are gone, and pods on nodes when their grace is over', async () => {
    const client = createFakeBackend().client();
    const told: string[] = [];
    client.watch(
      configMaps,
      { resourceVersion: '0' },
      ({ type, object }) => told.push(`${type} ${object.metadata.deletionTimestamp ?? ''}`),
      () => undefined,
    );
    const map = { namespace: 'n', name: 'm' };
    await client.create(configMaps, { metadata: { ...map, finalizers: ['a/b'] } });
    await client.delete(configMaps, map);
    await client.patch(configMaps, map, { type: 'merge', body: { metadata: { finalizers: null } } });
    await expect(client.get(configMaps, map)).rejects.toMatchObject({ code: 404 });
    expect(told).toEqual([
      'ADDED ',
      'MODIFIED 2026-01-01T00:00:00Z',
      'MODIFIED 2026-01-01T00:00:00Z',
      'DELETED 2026-01-01T00:00:00Z',
    ]);

    await client.create(pods, { ...draft, spec: { ...draft.spec, nodeName: 'node-1' } });
    await client.delete(pods, ref);
    expect((await client.get(pods, ref)).metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:30Z',
      deletionGracePeriodSeconds: 30,
    });
    await client.delete(pods, ref, { gracePeriodSeconds: 0 });
    await expect(client.get(pods, ref)).rejects.toMatchObject({ code: 404 });
  });

  it('watches from a version, with initial events, and not from a compacted one', async () => {
    const backend = createFakeBackend();
    const client = backend.client();
    const watch = (query: object): string[] => {
      const told: string[] = [];
      client.watch(
        nodes,
        query,
        ({ type, object }) => told.push(`${type} ${object.metadata.name} ${object.metadata.resourceVersion}`),
        (error) => told.push(String(error)),
      );
      return told;
    };
    for (const name of ['a', 'b']) await client.create(nodes, { metadata: { name }, spec: {} });
    await client.delete(nodes, { name: 'a' });
    expect(watch({ resourceVersion: '1' })).toEqual(['ADDED b 2', 'DELETED a 3']);
    expect(watch({})).toEqual(['ADDED b 2']);
    expect(watch({ sendInitialEvents: true })).toEqual(['ADDED b 2', 'BOOKMARK  3']);
    backend.compact();
    const late = watch({ resourceVersion: '1' });
    await Promise.resolve();
    await Promise.resolve();
    expect(late).toEqual(['StatusError: too old resource version: 1 (3)']);
    expect(watch({ resourceVersion: '3' })).toEqual([]);
  });
});
