import { FileError } from '../contract.ts';
import { joinPath } from '../files/path.ts';
import {
  type ByteReader,
  type ByteWriter,
  createByteReader,
  nullWriter,
  readerOf,
} from '../shell/byte-stream.ts';
import type { AsyncFiles } from './contract.ts';

/** Bytes a device gives at a time. */
const DEVICE_CHUNK = 32 * 1024;
/** Bytes of a file being written that wait before they reach it. */
const WRITE_BUFFER = 1024 * 1024;

export interface Surroundings {
  readonly files: AsyncFiles;
  readonly cwd: string;
  readonly stdin: ByteReader;
  readonly stdout: ByteWriter;
  readonly stderr: ByteWriter;
  breathe(): Promise<void>;
}

/** Whether a path is a device that never ends or is no file. */
export function isDevice(path: string): boolean {
  return (
    path.startsWith('/dev/') &&
    /^\/dev\/(null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd\/\d)$/.test(path)
  );
}

/** Opens a file or device for reading. Rejects with FileError. */
export async function openInput(around: Surroundings, path: string): Promise<ByteReader> {
  const at = joinPath(around.cwd, path);
  switch (at) {
    case '/dev/null':
      return readerOf('');
    case '/dev/zero':
    case '/dev/full': {
      const zeros = new Uint8Array(DEVICE_CHUNK);
      return createByteReader(async () => {
        await around.breathe();
        return zeros;
      });
    }
    case '/dev/random':
    case '/dev/urandom':
      return createByteReader(async () => {
        await around.breathe();
        return crypto.getRandomValues(new Uint8Array(DEVICE_CHUNK));
      });
    case '/dev/stdin':
    case '/dev/tty':
    case '/dev/fd/0':
      return { ...around.stdin, close: () => undefined };
    default:
      return readerOf(await around.files.readFile(at));
  }
}

/** Opens a file or device for writing; `end` must be called. Rejects with FileError. */
export async function openOutput(
  around: Surroundings,
  path: string,
  append: boolean,
): Promise<ByteWriter & { end(): Promise<void> }> {
  const at = joinPath(around.cwd, path);
  const device = (writer: ByteWriter): ByteWriter & { end(): Promise<void> } => ({
    write: (data) => writer.write(data),
    end: async () => undefined,
  });
  if (at === '/dev/null' || at === '/dev/zero') return device(nullWriter);
  if (at === '/dev/stdout' || at === '/dev/tty' || at === '/dev/fd/1') return device(around.stdout);
  if (at === '/dev/stderr' || at === '/dev/fd/2') return device(around.stderr);
  if (at === '/dev/full') return device({ write: () => Promise.reject(new FileError('ENOSPC', at)) });
  await around.files.writeFile(at, new Uint8Array(0), { append });
  let waiting: Uint8Array[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    if (size === 0) return;
    const data = Buffer.concat(waiting);
    waiting = [];
    size = 0;
    await around.files.writeFile(at, data, { append: true });
  };
  return {
    async write(data) {
      const bytes = typeof data === 'string' ? Buffer.from(data) : data;
      waiting.push(bytes);
      size += bytes.length;
      if (size >= WRITE_BUFFER) await flush();
    },
    end: flush,
  };
}
