/** GET /.well-known/openid-configuration. `jwksUri` defaults to `<issuer>/openid/v1/jwks`. */
export function openIdConfiguration(issuer: string, jwksUri = `${issuer}/openid/v1/jwks`): object {
  return {
    issuer,
    jwks_uri: jwksUri,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}

/** GET /openid/v1/jwks: the public keys that verify this cluster's service-account tokens. */
export function jsonWebKeySet(_verifyingKeysPem: readonly string[]): { keys: object[] } {
  throw new Error('not yet');
}
