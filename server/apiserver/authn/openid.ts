import { ALGORITHM, verifyingKeys } from './token-keys.ts';

/**
 * GET /.well-known/openid-configuration. Models kubernetes/pkg/serviceaccount (openidmetadata).
 * @param jwksUri where the keys are; by default below the issuer.
 */
export function openIdConfiguration(issuer: string, jwksUri = `${issuer}/openid/v1/jwks`): object {
  return {
    issuer,
    jwks_uri: jwksUri,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [ALGORITHM],
  };
}

/** GET /openid/v1/jwks: the public keys that verify this cluster's service-account tokens. Throws on a bad PEM. */
export function jsonWebKeySet(verifyingKeysPem: readonly string[]): { keys: object[] } {
  const keys = [...verifyingKeys(verifyingKeysPem)].map(([kid, key]) => {
    const { kty, crv, x, y } = key.export({ format: 'jwk' });
    return { use: 'sig', kty, kid, crv, alg: ALGORITHM, x, y };
  });
  return { keys };
}
