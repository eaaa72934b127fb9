import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSeededIds } from '#server/base';
import { createAllocators } from './allocators.ts';
import { serviceOf } from './kinds/testing/context.ts';

const make = (serviceCidr: string, nodePortRange?: string): ReturnType<typeof createAllocators> =>
  createAllocators({ serviceCidr, nodePortRange, ids: createSeededIds(7), existing: [] });

const STEP = fc.oneof(
  fc.constant({ do: 'allocate' as const }),
  fc.record({ do: fc.constant('claim' as const), port: fc.integer({ min: 29_998, max: 30_022 }) }),
  fc.record({ do: fc.constant('release' as const), port: fc.integer({ min: 30_000, max: 30_019 }) }),
);

describe('allocators', () => {
  it('never hand out what is taken, and hand out again what was given back', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 80 }), (steps) => {
        const ports = make('10.0.0.0/24', '30000-30019').nodePort;
        const taken = new Set<number>();
        for (const step of steps) {
          if (step.do === 'release') {
            ports.release(step.port);
            taken.delete(step.port);
          } else if (step.do === 'claim') {
            const inside = step.port >= 30_000 && step.port <= 30_019;
            expect(ports.claim(step.port)).toBe(
              !inside ? 'out-of-range' : taken.has(step.port) ? 'taken' : 'ok',
            );
            if (inside) taken.add(step.port);
          } else {
            const port = ports.allocate();
            if (port === undefined) expect(taken.size).toBe(20);
            else {
              expect(taken.has(port)).toBe(false);
              taken.add(port);
            }
          }
        }
      }),
    );
  });

  it('give every address of a range before they say there is none', () => {
    const { clusterIp } = make('10.0.0.0/28');
    const given = new Set(Array.from({ length: 14 }, () => clusterIp.allocate()));
    expect(given.size).toBe(14);
    expect(given.has('10.0.0.0') || given.has('10.0.0.15')).toBe(false);
    expect(clusterIp.allocate()).toBeUndefined();
  });

  it('leave the lower band to those who choose', () => {
    const { clusterIp, nodePort } = make('10.96.0.0/16');
    for (let i = 0; i < 300; i++) {
      const [, , third, fourth] = (clusterIp.allocate() ?? '').split('.').map(Number);
      expect((third ?? 0) * 256 + (fourth ?? 0)).toBeGreaterThan(256);
      expect(nodePort.allocate()).toBeGreaterThanOrEqual(30_086);
    }
    expect(clusterIp.claim('10.96.0.10')).toBe('ok');
  });

  it.each(['10.96.0.0', '10.96.255.255', '10.97.0.1', 'none', '::1'])(
    '%s is not for services of 10.96.0.0/16',
    (ip) => {
      expect(make('10.96.0.0/16').clusterIp.claim(ip)).toBe('out-of-range');
    },
  );

  it('know what stored Services have', () => {
    const existing = [
      serviceOf({
        clusterIPs: ['10.96.0.1'],
        ports: [{ port: 1, nodePort: 30001 }],
        healthCheckNodePort: 30002,
      }),
    ];
    const { clusterIp, nodePort } = createAllocators({
      serviceCidr: '10.96.0.0/16',
      ids: createSeededIds(),
      existing,
    });
    expect([clusterIp.claim('10.96.0.1'), nodePort.claim(30001), nodePort.claim(30002)]).toEqual([
      'taken',
      'taken',
      'taken',
    ]);
  });

  it.each(['10.96.0.0', '10.96.0.0/31', 'fd00::/108', ''])('refuse %j as a service network', (cidr) => {
    expect(() => make(cidr)).toThrow('not an IPv4 service network');
  });
});
