import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSeededIds, OperationalError, silentLogger } from '#server/base';
import { loadAccessToken } from './access-token.ts';
import { type HttpServer, type Route, startHttpServer } from './http-server.ts';
import { createRoutes } from './routes.ts';

describe('the web server', () => {
  let folder: string;
  let server: HttpServer;
  let token: string;
  const failing: Route = {
    method: 'GET',
    path: '/breaks',
    summary: 'breaks',
    handle: () => Promise.reject(new TypeError('a bug')),
  };

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'http-'));
    const accessToken = loadAccessToken(folder, createSeededIds(7));
    token = accessToken.value;
    const routes = createRoutes({
      owned: () => undefined,
      readiness: () => ({ ready: false, waitingFor: 'the test' }),
      metrics: new Registry(),
      metricsToken: undefined,
      publicApiUrl: undefined,
    });
    server = await startHttpServer({
      host: '127.0.0.1',
      port: 0,
      token: accessToken,
      routes: [...routes, failing],
      log: silentLogger,
    });
  });
  afterEach(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function ask(
    path: string,
    options: { method?: string; headers?: Record<string, string>; body?: string } = {},
  ): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          host: '127.0.0.1',
          port: server.port,
          path,
          method: options.method ?? 'GET',
          headers: { host: `127.0.0.1:${server.port}`, ...options.headers },
        },
        (response) => {
          let body = '';
          response.on('data', (chunk: Buffer) => (body += chunk.toString()));
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
          );
        },
      );
      request.on('error', reject);
      request.end(options.body);
    });
  }
  const asUser = (): Record<string, string> => ({ authorization: `Bearer ${token}` });

  it('keeps the token to its user', () => {
    expect(statSync(join(folder, 'token')).mode & 0o777).toBe(0o600);
    expect(loadAccessToken(folder, createSeededIds(8)).value).toBe(token);
    expect(loadAccessToken(folder, createSeededIds(8)).matches(`${token}x`)).toBe(false);
  });

  const refusals: [
    string,
    string,
    { method?: string; headers?: Record<string, string>; body?: string; anonymous?: boolean },
    number,
  ][] = [
    ['no token', '/api/openapi.json', { anonymous: true }, 401],
    [
      'a wrong token',
      '/api/openapi.json',
      { headers: { authorization: 'Bearer nope' }, anonymous: true },
      401,
    ],
    ['an unknown path without token', '/nothing', { anonymous: true }, 401],
    ['an unknown path', '/nothing', {}, 404],
    ['a foreign Host', '/healthz', { headers: { host: 'evil.example' } }, 421],
    ['a Host without the port', '/healthz', { headers: { host: '127.0.0.1' } }, 421],
    ['a foreign Origin', '/healthz', { headers: { origin: 'http://evil.example' } }, 403],
    ['an Origin of another port', '/healthz', { headers: { origin: 'http://127.0.0.1:1' } }, 403],
    ['another method', '/api/openapi.json', { method: 'POST' }, 405],
    [
      'a large body',
      '/api/openapi.json',
      { method: 'POST', headers: { 'content-length': '1000000' }, body: 'x'.repeat(1000000) },
      413,
    ],
    ['an unknown cluster', '/api/kubeconfig?cluster=other', {}, 400],
    ['a kubeconfig before there is a cluster', '/api/kubeconfig', {}, 503],
    ['a target that is no path', '//evil.example/api', {}, 400],
    ['a very long address', `/${'x'.repeat(5000)}`, {}, 414],
    ['a route that fails', '/breaks', {}, 500],
  ];
  it.each(refusals)('refuses %s', async (_what, path, { anonymous, headers, ...rest }, status) => {
    const answer = await ask(path, { ...rest, headers: { ...(anonymous ? {} : asUser()), ...headers } });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ kind: 'Status', status: 'Failure', code: status });
  });

  it('answers probes without the token', async () => {
    expect(await ask('/healthz')).toMatchObject({ status: 200, body: 'ok\n' });
    expect(await ask('/readyz')).toMatchObject({ status: 503, body: 'waiting for the test\n' });
    expect((await ask('/metrics')).status).toBe(200);
  });

  it('turns ?t= into a strict cookie and a clean address', async () => {
    const login = await ask(`/api/openapi.json?t=${token}&x=1`);
    expect(login.status).toBe(303);
    expect(login.headers.location).toBe('/api/openapi.json?x=1');
    const [cookie = ''] = login.headers['set-cookie'] as string[];
    expect(cookie).toBe(`kube-classroom=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000`);
    expect((await ask('/api/openapi.json', { headers: { cookie: cookie.split(';')[0] ?? '' } })).status).toBe(
      200,
    );
    expect((await ask('/api/openapi.json?t=wrong')).status).toBe(401);
  });

  it('describes its own routes', async () => {
    const description = JSON.parse((await ask('/api/openapi.json', { headers: asUser() })).body) as {
      openapi: string;
      paths: object;
    };
    expect(description.openapi).toBe('3.1.0');
    expect(Object.keys(description.paths).sort()).toEqual([
      '/api/kubeconfig',
      '/api/kubeconfigs',
      '/api/kubeconfigs/{id}',
      '/api/openapi.json',
      '/healthz',
      '/metrics',
      '/readyz',
    ]);
  });

  it('names a busy port and how to mend it', async () => {
    const second = startHttpServer({
      host: '127.0.0.1',
      port: server.port,
      token: loadAccessToken(folder, createSeededIds()),
      routes: [],
      log: silentLogger,
    });
    await expect(second).rejects.toThrow(
      new OperationalError(
        `cannot listen on port ${server.port} (127.0.0.1): it is in use by another program`,
        {
          remedy: 'end the other program, or set PORT to a free port',
        },
      ),
    );
  });
});
