import { StringDecoder } from 'node:string_decoder';
import type { ByteReader } from './byte-stream.ts';

const MAX_HISTORY = 200;
const MAX_LINE = 4096;

export type EditedLine = { kind: 'line'; text: string } | { kind: 'interrupt' } | { kind: 'end' };

export interface LineEditor {
  /** Shows the prompt and edits until Return (which is not echoed), ^C or ^D on an empty line. The terminal must be raw meanwhile. */
  read(prompt: string): Promise<EditedLine>;
}

/**
 * Line editing as busybox's: arrows, Home, End, history, ^A ^E ^K ^U ^W ^L, Tab. `complete` returns what the word before the
 * cursor may become.
 */
export function createLineEditor(options: {
  input: ByteReader;
  write: (text: string) => Promise<void>;
  complete: (before: string) => Promise<string[]>;
}): LineEditor {
  const { input, write, complete } = options;
  const decoder = new StringDecoder('utf8');
  const history: string[] = [];
  let pending = '';
  let line: string[] = [];
  let cursor = 0;
  let place = 0;
  let draft = '';
  let prompt = '';

  const redraw = async (): Promise<void> => {
    const back = line.length - cursor;
    await write(
      `\r${prompt.slice(prompt.lastIndexOf('\n') + 1)}${line.join('')}\x1b[J${back > 0 ? `\x1b[${back}D` : ''}`,
    );
  };
  const replace = async (text: string): Promise<void> => {
    line = [...text];
    cursor = line.length;
    await redraw();
  };
  const recall = async (step: number): Promise<void> => {
    const next = place + step;
    if (next < 0 || next > history.length) return;
    if (place === history.length) draft = line.join('');
    place = next;
    await replace(place === history.length ? draft : (history[place] ?? ''));
  };
  const insert = async (text: string): Promise<void> => {
    const room = [...text].slice(0, MAX_LINE - line.length);
    const atEnd = cursor === line.length;
    line.splice(cursor, 0, ...room);
    cursor += room.length;
    if (atEnd) await write(room.join(''));
    else await redraw();
  };
  const erase = async (from: number, to: number): Promise<void> => {
    if (from < 0 || from >= to) return;
    line.splice(from, to - from);
    cursor = from;
    await redraw();
  };
  const tab = async (): Promise<void> => {
    const before = line.slice(0, cursor).join('');
    const word = /\S*$/.exec(before)?.[0] ?? '';
    const found = await complete(before);
    if (found.length === 0) return;
    const shared = found.reduce((a, b) => {
      let length = 0;
      while (length < a.length && a[length] === b[length]) length += 1;
      return a.slice(0, length);
    });
    if (shared.length > word.length) await insert(shared.slice(word.length));
    else if (found.length > 1) {
      await write(`\n${found.map((one) => one.replace(/\/$/, '').split('/').at(-1)).join('  ')}\n`);
      await redraw();
    }
    if (found.length === 1 && !shared.endsWith('/')) await insert(' ');
  };
  const move = async (to: number): Promise<void> => {
    cursor = Math.max(0, Math.min(line.length, to));
    await redraw();
  };
  const escape = async (sequence: string): Promise<void> => {
    switch (sequence) {
      case 'A':
        return recall(-1);
      case 'B':
        return recall(1);
      case 'C':
        return move(cursor + 1);
      case 'D':
        return move(cursor - 1);
      case 'H':
      case '1~':
      case '7~':
        return move(0);
      case 'F':
      case '4~':
      case '8~':
        return move(line.length);
      case '3~':
        return erase(cursor, Math.min(line.length, cursor + 1));
    }
  };
  const wordStart = (): number =>
    line
      .slice(0, cursor)
      .join('')
      .replace(/\s*\S*\s*$/, (match) => (/^\s/.test(match) ? ' ' : '')).length;
  const control = async (key: string): Promise<EditedLine | undefined> => {
    switch (key) {
      case '\x03':
        await write('^C\n');
        return { kind: 'interrupt' };
      case '\x04':
        if (line.length === 0) return { kind: 'end' };
        await erase(cursor, Math.min(line.length, cursor + 1));
        return undefined;
      case '\r':
      case '\n':
        return { kind: 'line', text: line.join('') };
      case '\x7f':
      case '\b':
        if (cursor > 0 && cursor === line.length) {
          line.pop();
          cursor -= 1;
          await write('\b \b');
        } else await erase(cursor - 1, cursor);
        return undefined;
      case '\t':
        await tab();
        return undefined;
      case '\x01':
        await move(0);
        return undefined;
      case '\x05':
        await move(line.length);
        return undefined;
      case '\x0b':
        line.length = cursor;
        await redraw();
        return undefined;
      case '\x0c':
        await write('\x1b[H\x1b[J');
        await redraw();
        return undefined;
      case '\x15':
        await erase(0, cursor);
        return undefined;
      case '\x17':
        await erase(wordStart(), cursor);
        return undefined;
      case '\x10':
        await recall(-1);
        return undefined;
      case '\x0e':
        await recall(1);
        return undefined;
      default:
        return undefined;
    }
  };
  /** Takes one key off what was typed; undefined: an escape sequence is not complete yet. */
  const step = async (): Promise<EditedLine | 'more' | undefined> => {
    const sequence = /^\x1b(?:[[O]([0-9;]*[A-Za-z~]))/.exec(pending);
    if (sequence) {
      pending = pending.slice(sequence[0].length);
      await escape(sequence[1] ?? '');
      return undefined;
    }
    if (/^\x1b([[O][0-9;]*)?$/.test(pending)) return 'more';
    const typed = /^[^\x00-\x1f\x7f]+/.exec(pending)?.[0];
    if (typed !== undefined) {
      pending = pending.slice(typed.length);
      await insert(typed);
      return undefined;
    }
    const key = pending[0] ?? '';
    pending = pending.slice(1);
    return control(key);
  };
  return {
    async read(shown) {
      prompt = shown;
      line = [];
      cursor = 0;
      place = history.length;
      draft = '';
      await write(prompt);
      for (;;) {
        while (pending !== '') {
          const end = await step();
          if (end === 'more') break;
          if (!end) continue;
          if (end.kind === 'line' && end.text.trim() !== '' && history.at(-1) !== end.text) {
            history.push(end.text);
            if (history.length > MAX_HISTORY) history.shift();
          }
          return end;
        }
        const chunk = await input.read();
        if (chunk === undefined) return { kind: 'end' };
        pending += decoder.write(Buffer.from(chunk));
      }
    },
  };
}
