import { createHash, timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ids } from '#server/base';

/** The key to a solo installation: who can read it is its user. */
export interface AccessToken {
  readonly value: string;
  /** Compares in constant time. */
  matches(candidate: string | undefined): boolean;
}

/** Reads `DATA_DIR/token`, or makes it (0600, 256 random bits). */
export function loadAccessToken(dataDir: string, ids: Ids): AccessToken {
  const path = join(dataDir, 'token');
  if (!existsSync(path)) {
    writeFileSync(`${path}.new`, `${Buffer.from(ids.bytes(32)).toString('base64url')}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
  chmodSync(path, 0o600);
  const value = readFileSync(path, 'utf8').trim();
  const digest = sha256(value);
  return {
    value,
    matches: (candidate) => candidate !== undefined && timingSafeEqual(sha256(candidate), digest),
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
