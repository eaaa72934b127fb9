import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type CommandResult, type Kubectl, type Product, run, startProduct } from '../support/product.ts';

function start(env: NodeJS.ProcessEnv): Promise<CommandResult> {
  return run(
    process.execPath,
    ['scripts/start.mjs'],
    { PATH: process.env.PATH, HOME: '/nonexistent', ...env },
    20,
  );
}

describe('a start that cannot be', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kube-classroom-bad-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('names a busy PORT', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const { code, stdout, stderr } = await start({ DATA_DIR: folder, PORT: String(port), API_PORT: '0' });
    server.close();
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: `kube-classroom: cannot listen on port ${port} (127.0.0.1): it is in use by another program\n  To mend it: end the other program, or set PORT to a free port.\n`,
    });
  });

  it('names a DATA_DIR that cannot be written', async () => {
    writeFileSync(join(folder, 'file'), '');
    const { code, stderr } = await start({ DATA_DIR: join(folder, 'file', 'below'), PORT: '0' });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^kube-classroom: DATA_DIR \S+\/file\/below cannot be written: .*\n {2}To mend it: make it writable for this user, or set DATA_DIR to another folder\.\n$/,
    );
  });

  it('names a DATA_DIR where no folder can be made', async () => {
    const { code, stderr } = await start({ DATA_DIR: '/proc/kube-classroom/data', PORT: '0' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^kube-classroom: DATA_DIR \/proc\/kube-classroom\/data cannot be written: /);
  });

  it('refuses a HOST that is not loopback', async () => {
    const { code, stderr } = await start({ DATA_DIR: folder, HOST: '0.0.0.0' });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'kube-classroom: HOST=0.0.0.0 is refused in MODE=solo, which has one local user and no accounts\n  To mend it: leave HOST out (127.0.0.1).\n',
    });
  });

  it.each([
    ['PORT', 'eighty'],
    ['CLOUD_SPEED', '-1'],
    ['STORE_SYNC', 'never'],
    ['MODE', 'school'],
  ])('refuses %s=%s by name', async (name, value) => {
    const { code, stderr } = await start({ DATA_DIR: folder, [name]: value });
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^kube-classroom: ${name}=${value} .*\\n {2}To mend it: .*\\n$`));
  });

  it('names an unsupported Node', async () => {
    const script = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.19.0' } }); await import('./scripts/start.mjs');`;
    const { code, stderr } = await run(process.execPath, ['--input-type=module', '-e', script], {
      PATH: process.env.PATH,
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'kube-classroom: Node 18.19.0 is not supported.\n  To mend it: install Node 20.20 or later of the 20 line, or 22.12 or later.\n',
    });
  });
});

describe('requests that cannot be', () => {
  let product: Product;
  let kubectl: Kubectl;
  let api: { server: URL; ca: string; token: string };

  beforeAll(async () => {
    product = await startProduct();
    kubectl = await product.kubectl();
    const config = parse(readFileSync(kubectl.kubeconfig, 'utf8')) as {
      clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
      users: { user: { token: string } }[];
    };
    api = {
      server: new URL(config.clusters[0]?.cluster.server ?? ''),
      ca: Buffer.from(config.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64').toString(),
      token: config.users[0]?.user.token ?? '',
    };
  });
  afterAll(async () => {
    await product?.stop();
    if (product) rmSync(product.dataDir, { recursive: true, force: true });
  });

  const agent = new Agent({ keepAlive: true });
  afterAll(() => agent.destroy());

  function ask(
    method: string,
    path: string,
    options: { body?: string | Buffer; headers?: Record<string, string>; absolute?: boolean } = {},
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const call = request(
        {
          host: api.server.hostname,
          port: api.server.port,
          path: options.absolute ? path : `${api.server.pathname}${path}`,
          method,
          ca: api.ca,
          agent,
          servername: 'localhost',
          headers: {
            authorization: `Bearer ${api.token}`,
            'content-type': 'application/json',
            ...options.headers,
          },
        },
        (response) => {
          let body = '';
          response.on('data', (chunk: Buffer) => (body += chunk.toString()));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
          response.on('error', reject);
        },
      );
      call.on('error', reject);
      call.end(options.body);
    });
  }

  const pods = '/api/v1/namespaces/default/pods';
  const cases: [string, string, string, Parameters<typeof ask>[2], number][] = [
    ['a body that is no JSON', 'POST', pods, { body: '{"kind":' }, 400],
    [
      'a body of another kind',
      'POST',
      pods,
      { body: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}' },
      400,
    ],
    ['an empty body', 'POST', pods, { body: '' }, 400],
    ['a body of 4 MiB', 'POST', pods, { body: `{"x":"${'y'.repeat(4 * 1024 * 1024)}"}` }, 413],
    [
      'bytes that pretend to be protobuf',
      'POST',
      pods,
      {
        body: Buffer.from('6b38730000ff00ff', 'hex'),
        headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
      },
      400,
    ],
    [
      'an unknown media type',
      'POST',
      pods,
      { body: 'a', headers: { 'content-type': 'application/x-thing' } },
      415,
    ],
    ['an unknown resource', 'GET', '/api/v1/namespaces/default/things', {}, 404],
    ['an unknown group', 'GET', '/apis/example.org/v1/things', {}, 404],
    ['an unknown path', 'GET', '/nothing', {}, 404],
    ['a method nobody has', 'PROPFIND', pods, {}, 405],
    ['a path that climbs', 'GET', '/clusters/a/b/../../management/api', { absolute: true }, 400],
    ['a cluster that is not', 'GET', '/clusters/handson-nobody/tenant-none/api', { absolute: true }, 404],
    ['a foreign Host', 'GET', '/version', { headers: { host: 'evil.example' } }, 421],
    ['a web page', 'GET', '/version', { headers: { origin: 'http://127.0.0.1:3000' } }, 403],
    ['a wrong token', 'GET', pods, { headers: { authorization: 'Bearer x.y.z' } }, 401],
    ['nobody', 'GET', pods, { headers: { authorization: '' } }, 403],
    ['a bad selector', 'GET', `${pods}?labelSelector=a%3D%3D%3D%3Db`, {}, 400],
    ['a bad limit', 'GET', `${pods}?limit=many`, {}, 400],
    [
      'a patch that is none',
      'PATCH',
      `${pods}/x`,
      { body: '{}', headers: { 'content-type': 'application/json' } },
      415,
    ],
  ];
  it.each(cases)('refuses %s', async (_what, method, path, options, status) => {
    const answer = await ask(method, path, options);
    expect({ status: answer.status, body: answer.body.slice(0, 300) }).toEqual({
      status,
      body: expect.any(String) as string,
    });
  });

  it('still serves after all of it', async () => {
    expect(await kubectl('get', '--raw', '/readyz')).toBe('ok');
    expect((await product.get('/healthz')).status).toBe(200);
  });
});
