import type { UnstructuredObject } from './object.ts';
export function isProtobuf(bytes: Uint8Array): boolean {
  return bytes[0] === 0x6b && bytes[1] === 0x38 && bytes[2] === 0x73 && bytes[3] === 0;
}
export function decodeProtobuf(bytes: Uint8Array): UnstructuredObject {
  throw new TypeError(`not yet ${bytes.length}`);
}
