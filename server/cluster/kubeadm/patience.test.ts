import { describe, expect, it } from 'vitest';
import { ConnectionError } from '#server/client';
import { notFound } from '#server/kube';
import type { KubeadmMachine } from './init.ts';
import { whileNobodyAnswers } from './patience.ts';

/** A machine whose time passes only while it sleeps. */
function machine(): KubeadmMachine & { slept: number } {
  let time = 0;
  const unused = () => {
    throw new TypeError('not used here');
  };
  return {
    files: undefined as never,
    hostname: 'm',
    ip: '10.0.0.1',
    slept: 0,
    now: () => time,
    async sleep(milliseconds) {
      time += milliseconds;
      this.slept += 1;
    },
    startKubelet: unused,
    clientFor: unused,
    clientFrom: unused,
  };
}

describe('whileNobodyAnswers', () => {
  it('tries again until an API server answers', async () => {
    const box = machine();
    let left = 3;
    const answer = await whileNobodyAnswers(box, async () => {
      if (left-- > 0) throw new ConnectionError('dial tcp 10.0.0.2:6443: i/o timeout');
      return 'joined';
    });
    expect({ answer, slept: box.slept }).toEqual({ answer: 'joined', slept: 3 });
  });

  it('gives up after five minutes, with the last error', async () => {
    const box = machine();
    const refused = whileNobodyAnswers(box, () => Promise.reject(new ConnectionError('nobody')));
    await expect(refused).rejects.toThrow(new ConnectionError('nobody'));
    expect(box.slept).toBe(300);
  });

  it('does not repeat what was refused', async () => {
    const box = machine();
    const refusal = notFound({ group: '', plural: 'configmaps' }, 'cluster-info');
    await expect(whileNobodyAnswers(box, () => Promise.reject(refusal))).rejects.toBe(refusal);
    expect(box.slept).toBe(0);
  });
});
