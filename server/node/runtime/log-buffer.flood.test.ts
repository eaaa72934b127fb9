import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { createLogBuffer, LOG_LIMIT_BYTES } from './log-buffer.ts';

describe('a flood of short lines', () => {
  it('keeps the newest, bounded in number as well as in bytes', async () => {
    const log = createLogBuffer(createManualClock());
    const chunk = Buffer.from('y\n'.repeat(4096));
    for (let written = 0; written < 8 * LOG_LIMIT_BYTES; written += chunk.length) log.write('stdout', chunk);
    log.write('stdout', Buffer.from('last\n'));
    const kept: Buffer[] = [];
    for await (const part of log.read({}, new AbortController().signal)) kept.push(Buffer.from(part));
    const lines = Buffer.concat(kept).toString().trimEnd().split('\n');
    expect(lines.at(-1)).toBe('last');
    expect(lines.length).toBeGreaterThan(1000);
    expect(lines.length).toBeLessThan(10_000);
  });
});
