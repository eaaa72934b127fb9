import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { InternalError } from '#server/base';

export interface SnapshotEntry {
  readonly type: 'file' | 'directory' | 'symlink';
  readonly path: string;
  readonly mode: number;
  readonly modified: number;
  readonly content: Uint8Array;
}

const MAGIC = 0x4b46_5331;
const TYPES = ['file', 'directory', 'symlink'] as const;
/** What a snapshot may unpack to. */
const MAX_SNAPSHOT = 512 * 1024 * 1024;
/** type 1, mode 2, modified 8, path length 2, content length 4 */
const HEAD = 17;

/** Parents before children. */
export function encodeSnapshot(entries: readonly SnapshotEntry[]): Uint8Array {
  const paths = entries.map((entry) => Buffer.from(entry.path));
  const size = entries.reduce(
    (sum, entry, index) => sum + HEAD + (paths[index]?.length ?? 0) + entry.content.length,
    0,
  );
  const out = Buffer.alloc(size);
  let at = 0;
  for (const [index, entry] of entries.entries()) {
    const path = paths[index] ?? Buffer.alloc(0);
    out.writeUInt8(TYPES.indexOf(entry.type), at);
    out.writeUInt16BE(entry.mode & 0xffff, at + 1);
    out.writeDoubleBE(entry.modified, at + 3);
    out.writeUInt16BE(path.length, at + 11);
    out.writeUInt32BE(entry.content.length, at + 13);
    at += HEAD;
    at += path.copy(out, at);
    out.set(entry.content, at);
    at += entry.content.length;
  }
  const head = Buffer.alloc(4);
  head.writeUInt32BE(MAGIC);
  return Buffer.concat([head, deflateRawSync(out)]);
}

export function decodeSnapshot(snapshot: Uint8Array): SnapshotEntry[] {
  const bytes = Buffer.from(snapshot.buffer, snapshot.byteOffset, snapshot.byteLength);
  if (bytes.length < 4 || bytes.readUInt32BE(0) !== MAGIC)
    throw new InternalError('these bytes are not a snapshot of files');
  const body = inflateRawSync(bytes.subarray(4), { maxOutputLength: MAX_SNAPSHOT });
  const entries: SnapshotEntry[] = [];
  for (let at = 0; at < body.length; ) {
    const type = TYPES[body.readUInt8(at)];
    if (!type) throw new InternalError('these bytes are not a snapshot of files');
    const pathLength = body.readUInt16BE(at + 11);
    const contentLength = body.readUInt32BE(at + 13);
    const pathAt = at + HEAD;
    const contentAt = pathAt + pathLength;
    entries.push({
      type,
      mode: body.readUInt16BE(at + 1),
      modified: body.readDoubleBE(at + 3),
      path: body.toString('utf8', pathAt, contentAt),
      content: Uint8Array.prototype.slice.call(body, contentAt, contentAt + contentLength),
    });
    at = contentAt + contentLength;
  }
  return entries;
}
