import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cluster, node, startCluster } from '#server/controllers/testing';
import { nodes } from '#server/kube';
import { createCidrSet } from './cidr-set.ts';
import { createNodeIpamController } from './index.ts';

describe('with a cluster range of four', () => {
  let cluster: Cluster;
  const run = () =>
    cluster.run('node-controller', (context) =>
      createNodeIpamController(context, { clusterCidr: '10.244.0.0/22', nodeCidrMaskSize: 24 }),
    );
  const rangeOf = async (name: string): Promise<string | undefined> =>
    (await cluster.until(nodes, { name }, (object) => object?.spec.podCIDR !== undefined)).spec.podCIDR;

  beforeEach(async () => {
    cluster = await startCluster();
  });
  afterEach(() => cluster.stop());

  it('gives every node its own, and none twice after a restart', async () => {
    const first = run();
    for (const name of ['a', 'b']) await cluster.admin.create(nodes, node(name));
    const ranges = [await rangeOf('a'), await rangeOf('b')];
    expect(ranges).toEqual(['10.244.0.0/24', '10.244.1.0/24']);
    expect((await cluster.admin.get(nodes, { name: 'a' })).spec.podCIDRs).toEqual(['10.244.0.0/24']);
    await first.stop();
    await cluster.admin.create(nodes, node('c'));
    run();
    expect(await rangeOf('c')).toBe('10.244.2.0/24');
  });

  it('says when there is none left, and gives a freed one away', async () => {
    run();
    for (const name of ['a', 'b', 'c', 'd']) {
      await cluster.admin.create(nodes, node(name));
      await rangeOf(name);
    }
    await cluster.admin.create(nodes, node('e'));
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 'e')).toContain(
        'Normal CIDRNotAvailable Node e status is now: CIDRNotAvailable',
      ),
    );
    await cluster.admin.delete(nodes, { name: 'b' });
    expect(await rangeOf('e')).toBe('10.244.1.0/24');
  });
});

it('a set never gives a range away twice', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constant('next' as const), fc.nat({ max: 15 })), { maxLength: 60 }),
      (steps) => {
        const cidrs = createCidrSet('192.168.0.0/20', 24);
        const held: string[] = [];
        for (const step of steps) {
          if (step === 'next') {
            const cidr = cidrs.next();
            if (held.length === 16) expect(cidr).toBeUndefined();
            else {
              expect(cidr).toMatch(/^192\.168\.\d+\.0\/24$/);
              expect(held).not.toContain(cidr);
              held.push(cidr ?? '');
            }
          } else {
            const [released] = held.splice(step % Math.max(1, held.length), 1);
            if (released) cidrs.release(released);
          }
        }
      },
    ),
  );
});
