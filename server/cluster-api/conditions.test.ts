import { describe, expect, it } from 'vitest';
import { aggregate, type Conditioned, report, summarize, words } from './conditions.ts';

const NOW = Date.UTC(2026, 0, 1);

function subject(name = 'one'): Conditioned {
  return { metadata: { name, generation: 3 } };
}

describe('reporting conditions', () => {
  it('keeps the time of a status that stays, and upstream order', () => {
    const object = subject();
    report(
      object,
      NOW,
      { type: 'Paused', status: 'False', reason: 'NotPaused' },
      { type: 'Ready', status: 'False', reason: 'NotReady', message: 'a' },
    );
    report(
      object,
      NOW + 60_000,
      { type: 'Ready', status: 'False', reason: 'NotReady', message: 'b' },
      { type: 'Zeta', status: 'True', reason: 'Zeta' },
    );
    expect(object.status?.conditions).toEqual([
      {
        type: 'Ready',
        status: 'False',
        reason: 'NotReady',
        message: 'b',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        observedGeneration: 3,
      },
      {
        type: 'Zeta',
        status: 'True',
        reason: 'Zeta',
        message: '',
        lastTransitionTime: '2026-01-01T00:01:00Z',
        observedGeneration: 3,
      },
      {
        type: 'Paused',
        status: 'False',
        reason: 'NotPaused',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        observedGeneration: 3,
      },
    ]);
  });

  it('sums up: bad before unknown, with a line for each', () => {
    const object = subject();
    report(
      object,
      NOW,
      { type: 'A', status: 'True', reason: 'A' },
      { type: 'B', status: 'Unknown', reason: 'B', message: '* X: who\n* Y: knows' },
      { type: 'Deleting', status: 'True', reason: 'Deleting' },
    );
    const options = { of: ['A', 'B', 'C', 'Deleting'], negative: ['Deleting'], reasons: words('Ready') };
    expect(summarize(object, 'Ready', options)).toEqual({
      type: 'Ready',
      status: 'False',
      reason: 'NotReady',
      message: '* Deleting: Deleting\n* B:\n  * X: who\n  * Y: knows\n* C: Condition not yet reported',
    });
    expect(summarize(object, 'Ready', { ...options, of: ['A'] })).toEqual({
      type: 'Ready',
      status: 'True',
      reason: 'Ready',
    });
  });

  it('groups objects that say the same', () => {
    const objects = ['a', 'b', 'c', 'd'].map(subject);
    for (const object of objects)
      report(object, NOW, {
        type: 'Ready',
        status: 'False',
        reason: 'NotReady',
        message: '* NodeHealthy: gone',
      });
    const finding = aggregate(objects, 'Ready', {
      type: 'MachinesReady',
      kind: 'Machine',
      empty: 'NoReplicas',
      reasons: words('Ready'),
    });
    expect(finding).toMatchObject({
      status: 'False',
      reason: 'NotReady',
      message: '* Machines a, b, c, ... (1 more):\n  * NodeHealthy: gone',
    });
  });
});
