import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

export const ALGORITHM = 'ES256';

/** The key id service-account tokens name in their header: SHA-256 of the public key's DER form. */
export function keyId(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
}

/** Public keys by id. `pems` may hold private keys too, as `--service-account-key-file` may. */
export function verifyingKeys(pems: readonly string[]): Map<string, KeyObject> {
  const keys = pems.map((pem) => createPublicKey(pem));
  return new Map(keys.map((key) => [keyId(key), key]));
}

export function signingKey(pem: string): { key: KeyObject; id: string } {
  return { key: createPrivateKey(pem), id: keyId(createPublicKey(pem)) };
}
