import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { KubeconfigError, parseKubeconfig } from './kubeconfig.ts';
import { formatKubeconfig } from './kubeconfig-format.ts';

const CA = '-----BEGIN CERTIFICATE-----\nQ0E=\n-----END CERTIFICATE-----\n';
const CERT = '-----BEGIN CERTIFICATE-----\nQ0VSVA==\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN EC PRIVATE KEY-----\nS0VZ\n-----END EC PRIVATE KEY-----\n';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface Parts {
  top?: object;
  cluster?: object;
  user?: object;
  context?: object;
}

function kubeconfig({ top, cluster, user, context }: Parts = {}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443/clusters/n/c', ...cluster } }],
    users: [{ name: 'u', user: { token: 'secret-token', ...user } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
    'current-context': 'x',
    ...top,
  });
}

function refusal(text: string): { message: string; field: string | undefined } {
  try {
    parseKubeconfig(text);
  } catch (error) {
    if (error instanceof KubeconfigError) return { message: error.message, field: error.field };
    throw error;
  }
  throw new TypeError('accepted');
}

describe('parseKubeconfig', () => {
  it('reads the current context', () => {
    const text = kubeconfig({
      cluster: { 'certificate-authority-data': base64(CA) },
      user: { 'client-certificate-data': base64(CERT), 'client-key-data': base64(KEY) },
      context: { namespace: 'handson-jane' },
      top: { preferences: {} },
    });
    expect(parseKubeconfig(text)).toEqual({
      server: 'https://127.0.0.1:6443/clusters/n/c',
      caPem: CA,
      certPem: CERT,
      keyPem: KEY,
      token: 'secret-token',
      namespace: 'handson-jane',
    });
  });

  it('reads what formatKubeconfig writes, and JSON', () => {
    const text = formatKubeconfig({
      cluster: { name: 'tenant', server: 'https://10.0.0.1:6443/', caPem: CA },
      user: { certPem: CERT, keyPem: KEY },
      context: { name: 'tenant-admin@tenant', namespace: 'default' },
    });
    const expected = {
      server: 'https://10.0.0.1:6443',
      caPem: CA,
      certPem: CERT,
      keyPem: KEY,
      namespace: 'default',
    };
    expect(parseKubeconfig(text)).toEqual(expected);
    expect(
      parseKubeconfig(
        JSON.stringify({
          clusters: [{ name: 'c', cluster: { server: 'https://[::1]:6443' } }],
          users: [{ name: 'u', user: {} }],
          contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
          'current-context': 'x',
        }),
      ),
    ).toEqual({ server: 'https://[::1]:6443' });
  });

  it.each([
    ['exec', { user: { exec: { command: 'id' } } }, 'users[0].user.exec'],
    ['auth-provider', { user: { 'auth-provider': { name: 'gcp' } } }, 'users[0].user.auth-provider'],
    ['username', { user: { username: 'a' } }, 'users[0].user.username'],
    ['password', { user: { password: 'a' } }, 'users[0].user.password'],
    ['tokenFile', { user: { tokenFile: '/etc/passwd' } }, 'users[0].user.tokenFile'],
    [
      'client-certificate',
      { user: { 'client-certificate': '/etc/passwd' } },
      'users[0].user.client-certificate',
    ],
    ['client-key', { user: { 'client-key': '/etc/passwd' } }, 'users[0].user.client-key'],
    ['as', { user: { as: 'root' } }, 'users[0].user.as'],
    ['as-uid', { user: { 'as-uid': '0' } }, 'users[0].user.as-uid'],
    ['as-groups', { user: { 'as-groups': ['system:masters'] } }, 'users[0].user.as-groups'],
    ['as-user-extra', { user: { 'as-user-extra': {} } }, 'users[0].user.as-user-extra'],
    ['proxy-url', { cluster: { 'proxy-url': 'http://evil' } }, 'clusters[0].cluster.proxy-url'],
    [
      'insecure-skip-tls-verify',
      { cluster: { 'insecure-skip-tls-verify': true } },
      'clusters[0].cluster.insecure-skip-tls-verify',
    ],
    [
      'certificate-authority',
      { cluster: { 'certificate-authority': '/ca' } },
      'clusters[0].cluster.certificate-authority',
    ],
    ['tls-server-name', { cluster: { 'tls-server-name': 'a' } }, 'clusters[0].cluster.tls-server-name'],
    ['an unknown one', { top: { include: 'a' } }, 'include'],
    ['__proto__', { top: { ['__proto__x']: 1 } }, '__proto__x'],
  ])('refuses %s by name', (_what, parts, field) => {
    expect(refusal(kubeconfig(parts))).toEqual({ message: `kubeconfig: ${field}: is refused`, field });
  });

  it('refuses such fields also in users that the current context does not name', () => {
    const users = [
      { name: 'u', user: {} },
      { name: 'other', user: { exec: { command: 'id' } } },
    ];
    expect(refusal(kubeconfig({ top: { users } })).field).toBe('users[1].user.exec');
  });

  it.each([
    ['http', 'http://127.0.0.1', 'must be an https URL'],
    ['no URL', 'localhost:6443', 'must be an https URL'],
    ['nonsense', '://', 'is not a URL'],
    ['credentials', 'https://a:b@127.0.0.1', 'must not hold credentials'],
    ['a query', 'https://127.0.0.1/?a=b', 'must not have a query or fragment'],
    ['nothing', '', 'is missing'],
    ['a number', 1, 'must be a string'],
  ])('refuses a server with %s', (_what, server, message) => {
    expect(refusal(kubeconfig({ cluster: { server } }))).toEqual({
      message: `kubeconfig: clusters[0].cluster.server: ${message}`,
      field: 'clusters[0].cluster.server',
    });
  });

  it.each<[string, Parts, string]>([
    [
      'a key without its certificate',
      { user: { 'client-key-data': base64(KEY) } },
      'users[0].user.client-certificate-data: is missing',
    ],
    [
      'a certificate without its key',
      { user: { 'client-certificate-data': base64(CERT) } },
      'users[0].user.client-key-data: is missing',
    ],
    [
      'data that is not base64',
      { cluster: { 'certificate-authority-data': '%%%%' } },
      'clusters[0].cluster.certificate-authority-data: is not base64',
    ],
    [
      'data that is not PEM',
      { cluster: { 'certificate-authority-data': base64('hello') } },
      'clusters[0].cluster.certificate-authority-data: holds no such PEM block',
    ],
    [
      'a token that would break a header',
      { user: { token: 'a\r\nx-evil: 1' } },
      'users[0].user.token: must be printable ASCII',
    ],
    [
      'a namespace that is a path',
      { context: { namespace: '../kube-system' } },
      'contexts[0].context.namespace: is not a namespace name',
    ],
    [
      'a context that is not there',
      { top: { 'current-context': 'y' } },
      'current-context: names "y", which is not there',
    ],
    ['no current context', { top: { 'current-context': '' } }, 'current-context: is missing'],
    [
      'a user that is not there',
      { context: { user: 'v' } },
      'contexts[0].context.user: names "v", which is not there',
    ],
    [
      'a cluster that is not there',
      { context: { cluster: 'd' } },
      'contexts[0].context.cluster: names "d", which is not there',
    ],
    ['another kind', { top: { kind: 'Pod' } }, 'kind: must be Config'],
    ['clusters that are no list', { top: { clusters: { a: 1 } } }, 'clusters: must be a list'],
    [
      'too many users',
      { top: { users: Array.from({ length: 257 }, () => ({ name: 'u' })) } },
      'users: has more than 256 entries',
    ],
  ])('refuses %s', (_what, parts, message) => {
    expect(refusal(kubeconfig(parts)).message).toBe(`kubeconfig: ${message}`);
  });

  it.each([
    ['aliases', 'a: &a x\nb: *a'],
    ['an anchor nobody uses', `${kubeconfig()}preferences: &a {}\n`],
    [
      'the billion laughs',
      `a: &a [x]\n${'bcdefgh'
        .split('')
        .map((c, i) => `${c}: &${c} [${`*${'abcdefgh'[i]},`.repeat(9)}]`)
        .join('\n')}`,
    ],
    ['deep flow nesting', `${'['.repeat(100_000)}`],
    ['deep block nesting', `${'- '.repeat(100_000)}a`],
    ['block nesting over lines', Array.from({ length: 500 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
    ['a text of more than 256 KiB', '#'.repeat(256 * 1024 + 1)],
    ['a key twice', `${kubeconfig()}kind: Config\n`],
    ['a tag', `${kubeconfig()}preferences: !!js/function 'x'\n`],
    ['two documents', `${kubeconfig()}---\nkind: Config\n`],
    ['merge keys', `${kubeconfig()}<<: {users: []}\n`],
    ['no mapping', 'hello'],
    ['nothing', ''],
    ['broken YAML', 'a: [b'],
  ])('refuses %s quickly', (_what, text) => {
    const before = performance.now();
    expect(refusal(text).message).toMatch(/^kubeconfig: /);
    expect(performance.now() - before).toBeLessThan(500);
  });

  it('never quotes a secret', () => {
    const secret = 'hunter2hunter2';
    for (const text of [
      kubeconfig({ user: { token: `${secret}\n` } }),
      kubeconfig({ user: { 'client-key-data': `${secret}%` } }),
      kubeconfig({ user: { password: secret } }),
      `token: [${secret}`,
    ]) {
      expect(refusal(text).message).not.toContain(secret);
    }
  });
});

describe('formatKubeconfig', () => {
  it('writes the layout of clientcmd', () => {
    const text = formatKubeconfig({
      cluster: { name: 'tenant', server: 'https://127.0.0.1:6443/clusters/n/tenant', caPem: 'ca' },
      user: { token: 't' },
      context: { name: 'tenant-admin@tenant', namespace: 'default' },
    });
    expect(text).toBe(
      [
        'apiVersion: v1',
        'clusters:',
        '- cluster:',
        '    certificate-authority-data: Y2E=',
        '    server: https://127.0.0.1:6443/clusters/n/tenant',
        '  name: tenant',
        'contexts:',
        '- context:',
        '    cluster: tenant',
        '    namespace: default',
        '    user: tenant-admin',
        '  name: tenant-admin@tenant',
        'current-context: tenant-admin@tenant',
        'kind: Config',
        'users:',
        '- name: tenant-admin',
        '  user:',
        '    token: t',
        '',
      ].join('\n'),
    );
  });

  it('quotes what YAML would read as something else', () => {
    const text = formatKubeconfig({
      cluster: { name: 'no', server: 'https://a' },
      user: { name: '1', token: '123' },
      context: { name: 'true' },
    });
    expect(parseKubeconfig(text)).toEqual({ server: 'https://a', token: '123' });
  });
});
