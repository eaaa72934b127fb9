import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeUtf8, encodeBase64 } from './bytes.ts';
import { decodeProtobuf, isProtobuf } from './protobuf.ts';
import { StatusError } from './status-error.ts';
import { body, message, type WireMessage } from './testing/protobuf-writer.ts';

/** The body that kubectl v1.36 posts for a Deployment of nginx:1 with one port and no replicas. */
const DEPLOYMENT =
  'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EroBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEogBCAASDAoKCgNhcHASA3dlYhpuChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEk4SMAoFbmdpbngSB25naW54OjEqADIKCgAQABhQIgAqAEIAagByAIABAIgBAJABAKIBABoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAiAgoAKAA4ABoMCAAQABgAIAAoADgAGgAiAA==';

const refusal = (bytes: Uint8Array): { code: number; message: string } => {
  try {
    decodeProtobuf(bytes);
  } catch (error) {
    if (error instanceof StatusError) return { code: error.code, message: error.message };
    throw error;
  }
  return { code: 0, message: 'no error' };
};

describe('protobuf bodies', () => {
  it('of kubectl become the JSON that kubectl would have sent', () => {
    expect(decodeProtobuf(Buffer.from(DEPLOYMENT, 'base64'))).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: {
            containers: [{ name: 'nginx', image: 'nginx:1', ports: [{ containerPort: 80 }], resources: {} }],
          },
        },
        strategy: {},
      },
      status: {},
    });
  });

  it('hold bytes, booleans behind pointers, and empty values', () => {
    const secret = body('v1', 'Secret', {
      1: { 1: 'tls', 8: {}, 3: '' },
      2: [{ 1: 'key', 2: Uint8Array.from([0, 255, 1]) }, { 1: 'empty' }],
      3: 'Opaque',
      5: false,
    });
    expect(decodeProtobuf(secret)).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'tls' },
      data: { key: 'AP8B', empty: '' },
      type: 'Opaque',
      immutable: false,
    });
  });

  it('hold times, quantities, int-or-strings, raw values and negative numbers', () => {
    const lease = body('coordination.k8s.io/v1', 'Lease', {
      1: { 1: 'l', 8: { 1: 1_700_000_000 }, 17: { 1: 'm', 7: { 1: '{"f:spec":{}}' } } },
      2: { 1: 'me', 3: { 1: 1_700_000_000, 2: 123_456_789 } },
    });
    expect(decodeProtobuf(lease)).toMatchObject({
      metadata: {
        creationTimestamp: '2023-11-14T22:13:20Z',
        managedFields: [{ manager: 'm', fieldsV1: { 'f:spec': {} } }],
      },
      spec: { holderIdentity: 'me', acquireTime: '2023-11-14T22:13:20.123456Z' },
    });
    const service = body('v1', 'Service', {
      2: {
        1: [
          { 3: 80, 4: { 1: 0, 2: 8080, 3: '' } },
          { 3: 81, 4: { 1: 1, 2: 0, 3: 'web' } },
        ],
      },
    });
    expect(decodeProtobuf(service)).toMatchObject({
      spec: {
        ports: [
          { port: 80, targetPort: 8080 },
          { port: 81, targetPort: 'web' },
        ],
      },
    });
    expect(decodeProtobuf(body('scheduling.k8s.io/v1', 'PriorityClass', { 2: -5 }))).toMatchObject({
      value: -5,
    });
    const quota = body('v1', 'ResourceQuota', { 2: { 1: [{ 1: 'cpu', 2: { 1: '1500m' } }] } });
    expect(decodeProtobuf(quota)).toMatchObject({ spec: { hard: { cpu: '1500m' } } });
    const review = body('authorization.k8s.io/v1', 'SubjectAccessReview', {
      2: { 3: 'ann', 5: [{ 1: 'scopes', 2: { 1: ['a', 'b'] } }] },
    });
    expect(decodeProtobuf(review)).toMatchObject({ spec: { user: 'ann', extra: { scopes: ['a', 'b'] } } });
  });

  it.each(['v1', 'policy/v1', 'apps/v1'])('find delete options under %s', (apiVersion) => {
    const options = body(apiVersion, 'DeleteOptions', { 1: 0, 2: { 1: 'uid' }, 4: 'Background', 5: 'All' });
    expect(decodeProtobuf(options)).toEqual({
      apiVersion,
      kind: 'DeleteOptions',
      metadata: {},
      gracePeriodSeconds: 0,
      preconditions: { uid: 'uid' },
      propagationPolicy: 'Background',
      dryRun: ['All'],
    });
  });

  it('of subresources are known', () => {
    const eviction = body('policy/v1', 'Eviction', { 1: { 1: 'p', 3: 'default' }, 2: { 1: 30 } });
    expect(decodeProtobuf(eviction)).toEqual({
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p', namespace: 'default' },
      deleteOptions: { gracePeriodSeconds: 30 },
    });
    const token = body('authentication.k8s.io/v1', 'TokenRequest', { 2: { 1: ['aud'], 4: 600 } });
    expect(decodeProtobuf(token)).toMatchObject({ spec: { audiences: ['aud'], expirationSeconds: 600 } });
  });

  it('may leave their type to the request', () => {
    const bare = body('', '', { 1: { 1: 'c' } });
    expect(refusal(bare)).toEqual({
      code: 400,
      message: `Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:"", Kind:""}'`,
    });
    expect(decodeProtobuf(bare, { apiVersion: 'v1', kind: 'ConfigMap' })).toMatchObject({
      kind: 'ConfigMap',
    });
  });

  it('skip fields they do not know', () => {
    const future = body('v1', 'ConfigMap', { 1: { 1: 'c' }, 900: { 1: 'x' }, 901: 7 });
    expect(decodeProtobuf(future)).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' } });
  });
});

describe('malformed bodies', () => {
  it.each([
    ['nothing', new Uint8Array(0), 'empty data'],
    ['the prefix alone', Uint8Array.from([0x6b, 0x38, 0x73, 0]), 'empty body'],
    [
      'no prefix',
      Uint8Array.from([123, 125]),
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    ],
    ['a cut field', body('v1', 'ConfigMap', Uint8Array.from([0x0a, 0x7f])), 'unexpected EOF'],
    [
      'an endless number',
      body('v1', 'ConfigMap', Uint8Array.from([...Array<number>(11).fill(0xff)])),
      'proto: integer overflow',
    ],
    ['a wrong wire type', body('v1', 'ConfigMap', { 1: 5 }), 'proto: wrong wireType = 0 for field Metadata'],
    [
      'a kind nobody knows',
      body('example.com/v1', 'Widget', {}),
      'no kind "Widget" is registered for version "example.com/v1" in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"',
    ],
  ])('%s are refused', (_, bytes, text) => {
    expect(refusal(bytes)).toEqual({ code: 400, message: text });
  });

  it('of hostile depth and size are refused', () => {
    // JSONSchemaProps nests in itself through `not`.
    let deep: WireMessage = {};
    for (let i = 0; i < 150; i++) deep = { 28: deep };
    const crd = body('apiextensions.k8s.io/v1', 'CustomResourceDefinition', { 2: { 7: { 4: { 1: deep } } } });
    expect(refusal(crd)).toEqual({ code: 400, message: 'proto: message is nested too deeply' });
    const large = new Uint8Array(9 * 1024 * 1024);
    large.set([0x6b, 0x38, 0x73, 0]);
    expect(refusal(large).code).toBe(413);
  });

  it('never cause anything but a refusal', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const { code } = refusal(body('v1', 'Pod', bytes));
        expect([0, 400]).toContain(code);
      }),
    );
  });

  it('are told from JSON by their prefix', () => {
    expect([isProtobuf(message({ 1: 'x' })), isProtobuf(body('v1', 'Pod', {}))]).toEqual([false, true]);
  });
});

describe('bytes', () => {
  it('are read as every UTF-8 decoder reads them', () => {
    const decoder = new TextDecoder();
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(decodeUtf8(new TextEncoder().encode(text))).toBe(text);
      }),
    );
    const broken = Uint8Array.from([0x61, 0xff, 0x62]);
    expect(decodeUtf8(broken)).toBe(decoder.decode(broken));
  });

  it('are written in base64 as everyone writes them', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(encodeBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'));
      }),
    );
  });
});
