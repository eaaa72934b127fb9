// Text and base64 from bytes, for a room without platform globals.

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const CHUNK = 4096;
const REPLACEMENT = 0xfffd;

/** The text of UTF-8 bytes; what is no UTF-8 becomes U+FFFD. */
export function decodeUtf8(bytes: Uint8Array): string {
  let text = '';
  let units: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] ?? 0;
    if (lead < 0x80) {
      units.push(lead);
      at++;
    } else {
      const { point, size } = decodePoint(bytes, at, lead);
      at += size;
      if (point < 0x10000) units.push(point);
      else units.push(0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
    }
    if (units.length >= CHUNK) {
      text += String.fromCharCode(...units);
      units = [];
    }
  }
  return text + String.fromCharCode(...units);
}

function decodePoint(bytes: Uint8Array, at: number, lead: number): { point: number; size: number } {
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const smallest = length === 4 ? 0x10000 : length === 3 ? 0x800 : 0x80;
  let point = lead & (0xff >> (length + 1));
  for (let i = 1; i < length; i++) {
    const next = bytes[at + i];
    if (lead < 0xc2 || lead > 0xf4 || next === undefined || (next & 0xc0) !== 0x80) {
      return { point: REPLACEMENT, size: 1 };
    }
    point = (point << 6) | (next & 0x3f);
  }
  const wrong = point < smallest || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff);
  return wrong ? { point: REPLACEMENT, size: 1 } : { point, size: length };
}

/** Standard base64 with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const word = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += BASE64.charAt(word >> 18) + BASE64.charAt((word >> 12) & 63);
    text += left > 1 ? BASE64.charAt((word >> 6) & 63) : '=';
    text += left > 2 ? BASE64.charAt(word & 63) : '=';
  }
  return text;
}
