import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { parseImageReference } from '../images/reference.ts';
import { createLogBuffer, LOG_LIMIT_BYTES } from './log-buffer.ts';
import { createPseudoTerminal } from './terminal.ts';

async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

const never = new AbortController().signal;

describe('container log', () => {
  it('keeps lines with their times and reads them by tail, since and limit', async () => {
    const clock = createManualClock();
    const log = createLogBuffer(clock);
    log.write('stdout', Buffer.from('one\ntwo\n'));
    await clock.advance(5_000);
    log.write('stderr', Buffer.from('thr'));
    log.write('stdout', Buffer.from('four\n'));
    log.write('stderr', Buffer.from('ee\n'));
    expect(await text(log.read({}, never))).toBe('one\ntwo\nfour\nthree\n');
    expect(await text(log.read({ tailLines: 2 }, never))).toBe('four\nthree\n');
    expect(await text(log.read({ sinceSeconds: 2 }, never))).toBe('four\nthree\n');
    expect(await text(log.read({ limitBytes: 5 }, never))).toBe('one\nt');
    expect(await text(log.read({ tailLines: 1, timestamps: true }, never))).toBe(
      '2026-01-01T00:00:05.000000000Z three\n',
    );
    expect(await text(log.read({ tailLines: 0 }, never))).toBe('');
  });

  it('follows until it is closed, and shows an unfinished line then', async () => {
    const log = createLogBuffer(createManualClock());
    log.write('stdout', Buffer.from('a\n'));
    const followed = text(log.read({ follow: true }, never));
    await new Promise((resolve) => setImmediate(resolve));
    log.write('stdout', Buffer.from('b\nprompt> '));
    log.close();
    expect(await followed).toBe('a\nb\nprompt> ');
  });

  it('ends when the reader goes', async () => {
    const log = createLogBuffer(createManualClock());
    const gone = new AbortController();
    const followed = text(log.read({ follow: true }, gone.signal));
    await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    expect(await followed).toBe('');
  });

  it('is bounded', async () => {
    const log = createLogBuffer(createManualClock());
    for (let i = 0; i < 300; i += 1) log.write('stdout', Buffer.from(`${i} ${'x'.repeat(8_000)}\n`));
    const kept = await text(log.read({}, never));
    expect(kept.length).toBeLessThanOrEqual(LOG_LIMIT_BYTES + 16_384);
    expect(kept.trimEnd().split('\n').at(-1)).toMatch(/^299 /);
  });
});

describe('pseudo-terminal', () => {
  const open = () => {
    const screen: string[] = [];
    const signals: string[] = [];
    const terminal = createPseudoTerminal({
      output: (bytes) => screen.push(Buffer.from(bytes).toString()),
      onSignal: (signal) => signals.push(signal),
    });
    return {
      terminal,
      signals,
      screen: () => screen.join(''),
      input: () => String(terminal.stdin.read() ?? ''),
    };
  };

  it('echoes, edits lines and maps newlines', () => {
    const { terminal, screen, input } = open();
    terminal.input(Buffer.from('lz\x7fs\r'));
    expect(input()).toBe('ls\n');
    expect(screen()).toBe('lz\b \bs\r\n');
    terminal.stdout.write('a\nb\r\n');
    expect(screen()).toBe('lz\b \bs\r\na\r\nb\r\n');
  });

  it('makes signals of control keys and an end of ^D', () => {
    const { terminal, signals, screen } = open();
    terminal.input(Buffer.from('half\x03\x04'));
    expect(signals).toEqual(['SIGINT']);
    expect(screen()).toBe('half^C\r\n');
    expect(terminal.stdin.read()).toEqual(Buffer.alloc(0));
    terminal.hangUp();
    expect(terminal.stdin.writableEnded).toBe(true);
  });

  it('passes everything on in raw mode', () => {
    const { terminal, signals, screen, input } = open();
    terminal.terminal.setRaw(true);
    terminal.input(Buffer.from('a\x03'));
    expect([input(), signals, screen()]).toEqual(['a\x03', [], '']);
  });
});

describe('image references', () => {
  it.each([
    ['nginx', 'docker.io/library/nginx', 'latest'],
    ['nginx:1.29', 'docker.io/library/nginx', '1.29'],
    ['curlimages/curl:8.11.0', 'docker.io/curlimages/curl', '8.11.0'],
    ['registry.k8s.io/pause:3.10', 'registry.k8s.io/pause', '3.10'],
    ['localhost:5000/x/y', 'localhost:5000/x/y', 'latest'],
  ])('%s', (reference, repository, tag) => {
    expect(parseImageReference(reference)).toMatchObject({ repository, tag });
  });

  it.each(['', 'Nginx', 'a b', 'nginx:', 'nginx@sha256:1', 'a//b'])('%j is none', (reference) => {
    expect(parseImageReference(reference)).toBeUndefined();
  });
});
