import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { createManualClock, createSeededIds } from '#server/base';
import type { UnstructuredObject } from '#server/kube';
import { createStoredObjects, type StoredObjects } from '../testing/stored-objects.ts';
import { type Authenticator, createAuthenticator } from './authenticator.ts';
import { jsonWebKeySet, openIdConfiguration } from './openid.ts';

const ISSUER = 'https://kubernetes.default.svc.cluster.local';
const START = Date.UTC(2026, 0, 1);

function keyPem(): { signingKeyPem: string; verifyingKeysPem: string[] } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    signingKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    verifyingKeysPem: [publicKey.export({ type: 'spki', format: 'pem' }).toString()],
  };
}

function object(
  kind: string,
  name: string,
  uid: string,
  rest: object = {},
  namespace = 'default',
): UnstructuredObject {
  return { apiVersion: 'v1', kind, metadata: { name, uid, ...(namespace ? { namespace } : {}) }, ...rest };
}

const KEYS = keyPem();

describe('service-account tokens', () => {
  let clock: ReturnType<typeof createManualClock>;
  let stored: StoredObjects;
  let authenticator: Authenticator;

  const create = (keys = KEYS): Authenticator => {
    const ids = createSeededIds();
    const facilities = { ...stored, now: () => clock.now(), uid: () => ids.uid() };
    return createAuthenticator({ clientCaPem: [], serviceAccount: { issuer: ISSUER, ...keys }, facilities });
  };
  const issue = async (
    options: Partial<Parameters<Authenticator['tokens']['issue']>[0]> = {},
  ): Promise<string> => {
    const serviceAccount = { name: 'builder', uid: 'sa-1' };
    return (
      await authenticator.tokens.issue({
        namespace: 'default',
        serviceAccount,
        expirationSeconds: 3600,
        ...options,
      })
    ).token;
  };
  const who = async (token: string): Promise<string | undefined> =>
    (await authenticator.authenticate({ bearerToken: token }))?.name;

  beforeEach(() => {
    clock = createManualClock(START);
    stored = createStoredObjects();
    stored.put('serviceaccounts', object('ServiceAccount', 'builder', 'sa-1'));
    authenticator = create();
  });

  it('prove the service account', async () => {
    const token = await issue();
    const { jti } = decodeJwt(token);
    expect(await authenticator.authenticate({ bearerToken: token })).toEqual({
      name: 'system:serviceaccount:default:builder',
      uid: 'sa-1',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${jti}`] },
    });
  });

  it('carry the claims upstream writes', async () => {
    stored.put('nodes', object('Node', 'n1', 'node-1', {}, ''));
    stored.put('pods', object('Pod', 'p', 'pod-1', { spec: { nodeName: 'n1' } }));
    const { token, expirationTimestamp } = await authenticator.tokens.issue({
      namespace: 'default',
      serviceAccount: { name: 'builder', uid: 'sa-1' },
      audiences: ['vault'],
      expirationSeconds: 600,
      bound: { kind: 'Pod', name: 'p', uid: 'pod-1' },
    });
    const now = START / 1000;
    expect(expirationTimestamp).toBe('2026-01-01T00:10:00Z');
    expect(decodeJwt(token)).toEqual({
      aud: ['vault'],
      exp: now + 600,
      iat: now,
      iss: ISSUER,
      jti: expect.any(String) as string,
      'kubernetes.io': {
        namespace: 'default',
        node: { name: 'n1', uid: 'node-1' },
        pod: { name: 'p', uid: 'pod-1' },
        serviceaccount: { name: 'builder', uid: 'sa-1' },
      },
      nbf: now,
      sub: 'system:serviceaccount:default:builder',
    });
    const [key] = jsonWebKeySet(KEYS.verifyingKeysPem).keys as { kid: string }[];
    expect(decodeProtectedHeader(token)).toEqual({ alg: 'ES256', kid: key?.kid });
  });

  it('of pods tell pod and node, and end with the pod', async () => {
    stored.put('nodes', object('Node', 'n1', 'node-1', {}, ''));
    stored.put('pods', object('Pod', 'p', 'pod-1', { spec: { nodeName: 'n1' } }));
    const token = await issue({ bound: { kind: 'Pod', name: 'p', uid: 'pod-1' } });
    expect((await authenticator.authenticate({ bearerToken: token }))?.extra).toMatchObject({
      'authentication.kubernetes.io/node-name': ['n1'],
      'authentication.kubernetes.io/node-uid': ['node-1'],
      'authentication.kubernetes.io/pod-name': ['p'],
      'authentication.kubernetes.io/pod-uid': ['pod-1'],
    });
    stored.put('pods', object('Pod', 'p', 'pod-2'));
    expect(await who(token)).toBeUndefined();
    stored.remove('pods', 'default', 'p');
    expect(await who(token)).toBeUndefined();
  });

  it('asked for by a kubelet live a year but are told to be renewed', async () => {
    stored.put('pods', object('Pod', 'p', 'pod-1'));
    const token = await issue({ expirationSeconds: 3607, bound: { kind: 'Pod', name: 'p', uid: 'pod-1' } });
    const claims = decodeJwt(token) as { exp: number; iat: number; 'kubernetes.io': { warnafter: number } };
    expect([claims.exp - claims.iat, claims['kubernetes.io'].warnafter - claims.iat]).toEqual([
      365 * 86400,
      3607,
    ]);
  });

  it('end with the service account, also when one of the same name follows', async () => {
    const token = await issue();
    stored.remove('serviceaccounts', 'default', 'builder');
    expect(await who(token)).toBeUndefined();
    stored.put('serviceaccounts', object('ServiceAccount', 'builder', 'sa-2'));
    expect(await who(token)).toBeUndefined();
  });

  it('live on for a minute while their service account is being deleted', async () => {
    const token = await issue();
    const deleting = object('ServiceAccount', 'builder', 'sa-1');
    deleting.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    stored.put('serviceaccounts', deleting);
    expect(await who(token)).toBe('system:serviceaccount:default:builder');
    await clock.advance(61_000);
    expect(await who(token)).toBeUndefined();
  });

  it.each([
    ['Secret', 'secrets', 'default'],
    ['Node', 'nodes', ''],
  ])('bound to a %s end with it', async (kind, plural, namespace) => {
    stored.put(plural, object(kind, 'b', 'b-1', {}, namespace));
    const token = await issue({ bound: { kind, name: 'b', uid: 'b-1' } });
    expect(await who(token)).toBe('system:serviceaccount:default:builder');
    stored.remove(plural, namespace, 'b');
    expect(await who(token)).toBeUndefined();
  });

  it('expire, with a minute of leeway, although the signature is remembered', async () => {
    const token = await issue({ expirationSeconds: 600 });
    expect(await who(token)).toBeDefined();
    await clock.advance(659_000);
    expect(await who(token)).toBeDefined();
    await clock.advance(2_000);
    expect(await who(token)).toBeUndefined();
  });

  it('are for their audiences only', async () => {
    const token = await issue({ audiences: ['vault'] });
    expect(await who(token)).toBeUndefined();
    expect((await authenticator.tokens.review(token, ['vault', 'x']))?.name).toBe(
      'system:serviceaccount:default:builder',
    );
    expect(await authenticator.tokens.review(token, ['x'])).toBeUndefined();
  });

  it('of another key, another issuer or with a broken signature prove nobody', async () => {
    const foreign = await create(keyPem()).tokens.issue({
      namespace: 'default',
      serviceAccount: { name: 'builder', uid: 'sa-1' },
      expirationSeconds: 3600,
    });
    expect(await who(foreign.token)).toBeUndefined();
    const good = await issue();
    const claims = decodeJwt(good);
    const key = createPrivateKey(KEYS.signingKeyPem);
    const resigned = (changes: object): Promise<string> =>
      new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'ES256' }).sign(key);
    expect(await who(await resigned({}))).toBe('system:serviceaccount:default:builder');
    expect(await who(await resigned({ iss: 'https://elsewhere' }))).toBeUndefined();
    expect(await who(await resigned({ sub: 'system:serviceaccount:default:other' }))).toBeUndefined();
    expect(await who(await resigned({ nbf: START / 1000 + 3600 }))).toBeUndefined();
    expect(await who(`${good.slice(0, -6)}AAAAAA`)).toBeUndefined();
    const [, payload] = good.split('.');
    expect(
      await who(`${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload ?? ''}.`),
    ).toBeUndefined();
    expect(await who('a.b.c')).toBeUndefined();
  });

  it.each([
    [
      599,
      'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    ],
    [
      2 ** 32 + 1,
      'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
    ],
  ])('are not issued for %d seconds', async (expirationSeconds, message) => {
    await expect(issue({ expirationSeconds })).rejects.toMatchObject({ code: 422, message });
  });

  it('are described for other verifiers', () => {
    expect(openIdConfiguration(ISSUER)).toMatchObject({
      issuer: ISSUER,
      jwks_uri: `${ISSUER}/openid/v1/jwks`,
    });
    expect(jsonWebKeySet(KEYS.verifyingKeysPem)).toMatchObject({
      keys: [{ use: 'sig', kty: 'EC', crv: 'P-256', alg: 'ES256' }],
    });
  });
});

describe('bootstrap tokens', () => {
  const TOKEN = 'abcdef.0123456789abcdef';
  const encoded = (values: Record<string, string>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
  const data = {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
    expiration: '2026-01-02T00:00:00Z',
    'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
  };
  const authenticate = async (
    changes: Record<string, string> = {},
    rest: object = {},
    token = TOKEN,
  ): Promise<unknown> => {
    const stored = createStoredObjects();
    const secret = { type: 'bootstrap.kubernetes.io/token', data: encoded({ ...data, ...changes }), ...rest };
    stored.put('secrets', object('Secret', 'bootstrap-token-abcdef', 's-1', secret, 'kube-system'));
    const facilities = { ...stored, now: () => START, uid: () => 'u' };
    const authenticator = createAuthenticator({
      clientCaPem: [],
      serviceAccount: { issuer: ISSUER, ...KEYS },
      facilities,
    });
    return authenticator.authenticate({ bearerToken: token });
  };

  it('prove a bootstrapping node', async () => {
    expect(await authenticate()).toEqual({
      name: 'system:bootstrap:abcdef',
      groups: [
        'system:bootstrappers',
        'system:bootstrappers:kubeadm:default-node-token',
        'system:authenticated',
      ],
    });
  });

  it.each<[string, Record<string, string>, object?, string?]>([
    ['has expired', { expiration: '2025-12-31T23:59:59Z' }],
    ['has an unreadable expiration', { expiration: 'soon' }],
    ['may only sign', { 'usage-bootstrap-authentication': 'false' }],
    ['has another secret', {}, {}, 'abcdef.0123456789abcdee'],
    ['is unknown', {}, {}, 'abcdeg.0123456789abcdef'],
    ['names another id inside', { 'token-id': 'abcdeg' }],
    ['has another type', {}, { type: 'Opaque' }],
    ['asks for groups it must not have', { 'auth-extra-groups': 'system:masters' }],
  ])('prove nobody when the token %s', async (_, changes, rest, token) => {
    expect(await authenticate(changes, rest, token)).toBeUndefined();
  });
});
