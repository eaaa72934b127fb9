import { describe, expect, it } from 'vitest';
import { configMaps, deployments, nodes, pods } from '#server/kube';
import { ConnectionError } from './contract.ts';
import { createFakeBackend } from './testing/index.ts';

describe('in-process client', () => {
  it('says who asks, names the parameters as the API does, and fills in what the resource knows', async () => {
    const backend = createFakeBackend();
    const user = { name: 'jane', groups: ['system:authenticated'] };
    const client = backend.client({ user, userAgent: 'kubelet/v1.36.3 (linux)' });
    await client.create(configMaps, { metadata: { name: 'a', namespace: 'n' }, data: { k: '1' } });
    await client.patch(
      configMaps,
      { namespace: 'n', name: 'a' },
      { type: 'merge', body: { data: { k: '2' } } },
      { fieldManager: 'me', dryRun: true },
    );
    await client.patch(
      configMaps,
      { namespace: 'n', name: 'b' },
      { type: 'apply', body: { metadata: { name: 'b' } }, force: true },
    );
    await client.list(configMaps, {
      namespace: 'n',
      labelSelector: 'a=b',
      fieldSelector: 'metadata.name=a',
      limit: 5,
      continue: 'c',
      resourceVersion: '0',
    });
    await client.delete(
      configMaps,
      { namespace: 'n', name: 'a' },
      { propagationPolicy: 'Foreground', preconditions: {} },
    );
    expect(backend.requests.map(({ resource, ...rest }) => [resource.plural, rest])).toEqual([
      [
        'configmaps',
        {
          verb: 'create',
          namespace: 'n',
          user,
          userAgent: 'kubelet/v1.36.3 (linux)',
          query: { fieldManager: 'kubelet' },
          body: {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'a', namespace: 'n' },
            data: { k: '1' },
          },
        },
      ],
      [
        'configmaps',
        {
          verb: 'patch',
          namespace: 'n',
          name: 'a',
          user,
          userAgent: 'kubelet/v1.36.3 (linux)',
          query: { fieldManager: 'me', dryRun: 'All' },
          contentType: 'application/merge-patch+json',
          body: { data: { k: '2' } },
        },
      ],
      [
        'configmaps',
        {
          verb: 'patch',
          namespace: 'n',
          name: 'b',
          user,
          userAgent: 'kubelet/v1.36.3 (linux)',
          query: { fieldManager: 'kubelet', force: 'true' },
          contentType: 'application/apply-patch+yaml',
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b' } },
        },
      ],
      [
        'configmaps',
        {
          verb: 'list',
          namespace: 'n',
          user,
          userAgent: 'kubelet/v1.36.3 (linux)',
          query: {
            labelSelector: 'a=b',
            fieldSelector: 'metadata.name=a',
            limit: '5',
            continue: 'c',
            resourceVersion: '0',
          },
        },
      ],
      [
        'configmaps',
        {
          verb: 'delete',
          namespace: 'n',
          name: 'a',
          user,
          userAgent: 'kubelet/v1.36.3 (linux)',
          query: {},
          body: {
            kind: 'DeleteOptions',
            apiVersion: 'v1',
            propagationPolicy: 'Foreground',
            preconditions: {},
          },
        },
      ],
    ]);
  });

  it('shares frozen objects without copying', async () => {
    const client = createFakeBackend().client();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    const [first, second] = [await client.get(nodes, { name: 'a' }), await client.get(nodes, { name: 'a' })];
    expect(first).toBe(second);
    expect(Object.isFrozen(first.metadata)).toBe(true);
  });

  it('delivers watch events before the write that caused them resolves, and none after stop', async () => {
    const client = createFakeBackend().client();
    const seen: string[] = [];
    const watch = client.watch(
      nodes,
      { resourceVersion: '0' },
      (event) => seen.push(`${event.type} ${event.object.metadata.name}`),
      () => seen.push('end'),
    );
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    await client.delete(nodes, { name: 'a' });
    expect(seen).toEqual(['ADDED a', 'DELETED a']);
    watch.stop();
    await client.create(nodes, { metadata: { name: 'b' }, spec: {} });
    expect(seen).toEqual(['ADDED a', 'DELETED a']);
  });

  it('ends a watch once, and never before watch returned', async () => {
    const backend = createFakeBackend();
    backend.reachable = false;
    const ends: unknown[] = [];
    backend.client().watch(
      nodes,
      {},
      () => undefined,
      (error) => ends.push(error),
    );
    expect(ends).toEqual([]);
    await Promise.resolve();
    await Promise.resolve();
    expect(ends).toEqual([expect.any(ConnectionError)]);
  });

  it('rejects what cannot be addressed instead of asking for something else', async () => {
    const backend = createFakeBackend();
    const client = backend.client();
    await expect(client.get(pods, { name: 'a' })).rejects.toThrow('a Pod is addressed without a namespace');
    await expect(client.get(pods, { namespace: 'n', name: '' })).rejects.toThrow(
      'a Pod is addressed without a name',
    );
    await expect(client.deleteCollection(deployments, {})).rejects.toThrow(
      'a Deployment is addressed without a namespace',
    );
    expect(backend.requests).toEqual([]);
  });

  it('binds a pod through its subresource', async () => {
    const client = createFakeBackend().client();
    const ref = { namespace: 'n', name: 'p' };
    await client.create(pods, { metadata: ref, spec: { containers: [] } });
    const target = { apiVersion: 'v1', kind: 'Node', name: 'node-1' };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: ref, target };
    await client.createSubresource(pods, ref, 'binding', binding);
    const pod = await client.get(pods, ref);
    expect(pod.spec?.nodeName).toBe('node-1');
    expect(pod.status?.conditions).toMatchObject([{ type: 'PodScheduled', status: 'True' }]);
    await expect(client.createSubresource(pods, ref, 'binding', binding)).rejects.toMatchObject({
      code: 409,
    });
  });
});
