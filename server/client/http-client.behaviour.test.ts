import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import * as x509 from '@peculiar/x509';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configMaps, deployments, type Node, nodes, pods, StatusError, type WatchEvent } from '#server/kube';
import { ConnectionError } from './contract.ts';
import { createHttpClient, type HttpClient } from './http-client.ts';

interface Identity {
  certPem: string;
  keyPem: string;
}

async function identity(name: string): Promise<Identity> {
  x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0]);
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: { ...algorithm, hash: 'SHA-256' },
    keys,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])],
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  return {
    certPem: certificate.toString('pem'),
    keyPem: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n`,
  };
}

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
  subject: string | string[] | undefined;
}

type Handler = (request: IncomingMessage, response: ServerResponse, seen: Seen) => void;

let serverIdentity: Identity;
let clientIdentity: Identity;
let server: Server;
let client: HttpClient;
let handler: Handler;
let seen: Seen[];
const sockets = new Set<Socket>();

const json = (response: ServerResponse, code: number, body: unknown): void => {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};
const node = (name: string, version: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, resourceVersion: version },
  spec: {},
});
const config = () => ({
  server: `https://127.0.0.1:${(server.address() as AddressInfo).port}/clusters/n/c`,
  caPem: serverIdentity.certPem,
});

beforeAll(async () => {
  [serverIdentity, clientIdentity] = await Promise.all([identity('server'), identity('jane')]);
  server = createServer(
    {
      cert: serverIdentity.certPem,
      key: serverIdentity.keyPem,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const subject = (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
        const one = {
          method: request.method ?? '',
          url: request.url ?? '',
          headers: request.headers,
          body: Buffer.concat(chunks).toString(),
          subject,
        };
        seen.push(one);
        handler(request, response, one);
      });
    },
  );
  server.on('secureConnection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));

beforeEach(() => {
  seen = [];
  client = createHttpClient(config(), { userAgent: 'kubelet/v1.36.3' });
});

afterEach(() => client.close());

interface Watched {
  events: WatchEvent<Node>[];
  ended: Promise<unknown>;
  stop(): void;
}

function watchNodes(query = {}, onEvent?: (event: WatchEvent<Node>) => void): Watched {
  const events: WatchEvent<Node>[] = [];
  let stop = (): void => undefined;
  const ended = new Promise<unknown>((resolve) => {
    const watch = client.watch(
      nodes,
      query,
      (event) => {
        events.push(event);
        onEvent?.(event);
      },
      resolve,
    );
    stop = () => watch.stop();
  });
  return { events, ended, stop };
}

describe('requests', () => {
  it('go below the prefix, with the media types and parameters of the Kubernetes API', async () => {
    handler = (_request, response) => json(response, 200, node('a', '1'));
    const meta = { name: 'a b', namespace: 'n' };
    await client.get(pods, { name: 'a b', namespace: 'n' });
    await client.list(deployments, { labelSelector: 'a in (b,c)', limit: 2 });
    await client.create(configMaps, { metadata: meta });
    await client.update(
      pods,
      { apiVersion: 'v1', kind: 'Pod', metadata: meta, spec: { containers: [] } },
      { subresource: 'status' },
    );
    for (const type of ['merge', 'strategic', 'apply'] as const) {
      await client.patch(nodes, { name: 'a' }, { type, body: { metadata: { name: 'a' } } }, { dryRun: true });
    }
    await client.patch(nodes, { name: 'a' }, { type: 'json', body: [{ op: 'remove', path: '/spec' }] });
    await client.delete(
      pods,
      { name: 'a', namespace: 'n' },
      { gracePeriodSeconds: 0, propagationPolicy: 'Background' },
    );
    await client.deleteCollection(pods, { namespace: 'n', fieldSelector: 'spec.nodeName=x' });
    await client.createSubresource(pods, meta, 'eviction', {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: meta,
    });
    const prefix = '/clusters/n/c';
    expect(
      seen.map((one) => [one.method, one.url.slice(prefix.length), one.headers['content-type'], one.body]),
    ).toEqual([
      ['GET', '/api/v1/namespaces/n/pods/a%20b', undefined, ''],
      ['GET', '/apis/apps/v1/deployments?labelSelector=a+in+%28b%2Cc%29&limit=2', undefined, ''],
      [
        'POST',
        '/api/v1/namespaces/n/configmaps?fieldManager=kubelet',
        'application/json',
        '{"metadata":{"name":"a b","namespace":"n"},"apiVersion":"v1","kind":"ConfigMap"}',
      ],
      [
        'PUT',
        '/api/v1/namespaces/n/pods/a%20b/status?fieldManager=kubelet',
        'application/json',
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a b","namespace":"n"},"spec":{"containers":[]}}',
      ],
      [
        'PATCH',
        '/api/v1/nodes/a?fieldManager=kubelet&dryRun=All',
        'application/merge-patch+json',
        '{"metadata":{"name":"a"}}',
      ],
      [
        'PATCH',
        '/api/v1/nodes/a?fieldManager=kubelet&dryRun=All',
        'application/strategic-merge-patch+json',
        '{"metadata":{"name":"a"}}',
      ],
      [
        'PATCH',
        '/api/v1/nodes/a?fieldManager=kubelet&dryRun=All',
        'application/apply-patch+yaml',
        '{"metadata":{"name":"a"},"apiVersion":"v1","kind":"Node"}',
      ],
      [
        'PATCH',
        '/api/v1/nodes/a?fieldManager=kubelet',
        'application/json-patch+json',
        '[{"op":"remove","path":"/spec"}]',
      ],
      [
        'DELETE',
        '/api/v1/namespaces/n/pods/a',
        'application/json',
        '{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Background"}',
      ],
      ['DELETE', '/api/v1/namespaces/n/pods?fieldSelector=spec.nodeName%3Dx', undefined, ''],
      [
        'POST',
        '/api/v1/namespaces/n/pods/a%20b/eviction?fieldManager=kubelet',
        'application/json',
        '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a b","namespace":"n"}}',
      ],
    ]);
    expect(
      seen.every((one) => one.url.startsWith(prefix) && one.headers['user-agent'] === 'kubelet/v1.36.3'),
    ).toBe(true);
  });

  it('never leave the path they are meant for', async () => {
    handler = (_request, response) => json(response, 200, node('a', '1'));
    await expect(client.get(nodes, { name: '..' })).rejects.toThrow("cannot be part of a request's path");
    await client.get(nodes, { name: '../secrets?x=y' });
    expect(seen.map((one) => one.url)).toEqual(['/clusters/n/c/api/v1/nodes/..%2Fsecrets%3Fx%3Dy']);
  });

  it('share a connection, and answers are frozen throughout', async () => {
    handler = (_request, response) => json(response, 200, node('a', '1'));
    const before = sockets.size;
    for (let i = 0; i < 5; i++) {
      const answer = await client.get(nodes, { name: 'a' });
      expect(answer).toEqual(node('a', '1'));
      expect([Object.isFrozen(answer), Object.isFrozen(answer.metadata)]).toEqual([true, true]);
    }
    expect(sockets.size - before).toBeLessThanOrEqual(1);
  });

  it('carry the token and the client certificate', async () => {
    handler = (_request, response) => json(response, 200, node('a', '1'));
    const named = createHttpClient({ ...config(), ...clientIdentity, token: 't0ken' }, { userAgent: 'x' });
    await named.get(nodes, { name: 'a' });
    named.close();
    expect([seen[0]?.subject, seen[0]?.headers.authorization]).toEqual(['jane', 'Bearer t0ken']);
  });

  it('give raw answers with their status, whatever it is', async () => {
    handler = (request, response) =>
      request.url?.endsWith('/version')
        ? json(response, 200, { major: '1' })
        : response.writeHead(500).end('not ok');
    expect(await client.raw('/version')).toEqual({ status: 200, body: { major: '1' } });
    expect(await client.raw('/healthz')).toEqual({ status: 500, body: 'not ok' });
  });
});

describe('refusals', () => {
  it('are the Status the server sent', async () => {
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'nodes "a" not found',
      reason: 'NotFound',
      details: { name: 'a', kind: 'nodes' },
      code: 404,
    };
    handler = (_request, response) => json(response, 404, status);
    const error = await client.get(nodes, { name: 'a' }).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(StatusError);
    expect((error as StatusError).status).toEqual(status);
  });

  it.each([
    [404, 'NotFound', 'the server could not find the requested resource (get nodes a)'],
    [503, 'ServiceUnavailable', 'the server is currently unable to handle the request (get nodes a)'],
    [
      502,
      'InternalError',
      'an error on the server ("<html>") has prevented the request from succeeding (get nodes a)',
    ],
    [
      418,
      'Unknown',
      'the server responded with the status code 418 but did not return more information (get nodes a)',
    ],
    [
      302,
      'Unknown',
      'the server responded with the status code 302 but did not return more information (get nodes a)',
    ],
  ])('are made from the code %i where there is no Status', async (code, reason, message) => {
    handler = (_request, response) =>
      response.writeHead(code, { location: 'https://example.com/' }).end('<html>');
    await expect(client.get(nodes, { name: 'a' })).rejects.toMatchObject({
      name: 'StatusError',
      code,
      reason,
      message,
    });
    expect(seen).toHaveLength(1);
  });
});

describe('no API server', () => {
  it.each<[string, Handler]>([
    ['a connection that is cut before the answer', (request) => request.socket.destroy()],
    [
      'an answer that is cut',
      (request, response) => {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('{"kind":', () => request.socket.destroy());
      },
    ],
    [
      'an answer that is not JSON',
      (_request, response) => response.writeHead(200).end('<html>welcome</html>'),
    ],
  ])('%s is a ConnectionError', async (_what, one) => {
    handler = one;
    await expect(client.get(nodes, { name: 'a' })).rejects.toThrow(ConnectionError);
    await expect(client.create(nodes, { metadata: { name: 'a' }, spec: {} })).rejects.toThrow(
      ConnectionError,
    );
    expect(seen.filter((request) => request.method === 'POST')).toHaveLength(1);
  });

  it('a refused connection and a server of another CA are ConnectionErrors', async () => {
    const nobody = createHttpClient({ server: 'https://127.0.0.1:1' }, { userAgent: 'x' });
    await expect(nobody.get(nodes, { name: 'a' })).rejects.toThrow(ConnectionError);
    const impostor = createHttpClient({ ...config(), caPem: clientIdentity.certPem }, { userAgent: 'x' });
    await expect(impostor.get(nodes, { name: 'a' })).rejects.toThrow(ConnectionError);
    expect(seen).toEqual([]);
    nobody.close();
    impostor.close();
  });

  it('a read over a kept connection that the server had closed is sent again, a write is not', async () => {
    handler = (_request, response) => json(response, 200, node('a', '1'));
    await client.get(nodes, { name: 'a' });
    let cut = true;
    handler = (request, response) => {
      if (cut) request.socket.destroy();
      else json(response, 200, node('a', '2'));
      cut = false;
    };
    expect((await client.get(nodes, { name: 'a' })).metadata.resourceVersion).toBe('2');
    cut = true;
    await expect(client.delete(nodes, { name: 'a' })).rejects.toThrow(ConnectionError);
  });
});

describe('watch', () => {
  it('gives events in order however they are cut, and ends without an error when the server ends it', async () => {
    const events = [
      { type: 'ADDED', object: node('ä', '1') },
      { type: 'MODIFIED', object: node('ä', '2') },
      { type: 'BOOKMARK', object: node('', '3') },
    ];
    handler = (_request, response) => {
      response.writeHead(200);
      const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
      const write = (at: number): void => {
        if (at >= bytes.length) response.end();
        else response.write(bytes.subarray(at, at + 7), () => write(at + 7));
      };
      write(0);
    };
    const { events: got, ended } = watchNodes({ resourceVersion: '5', labelSelector: 'a' });
    expect(await ended).toBeUndefined();
    expect(got).toEqual(events);
    expect(Object.isFrozen(got[0]?.object.metadata)).toBe(true);
    expect(seen[0]?.url).toBe(
      '/clusters/n/c/api/v1/nodes?labelSelector=a&resourceVersion=5&allowWatchBookmarks=true&watch=true',
    );
  });

  it('asks for initial events the way servers demand', async () => {
    handler = (_request, response) => response.writeHead(200).end();
    await watchNodes({ sendInitialEvents: true, allowWatchBookmarks: false }).ended;
    expect(seen[0]?.url).toBe(
      '/clusters/n/c/api/v1/nodes?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&watch=true',
    );
  });

  it('ends with the StatusError of an ERROR event, after the events before it', async () => {
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'too old resource version: 1 (5)',
      reason: 'Expired',
      code: 410,
    };
    handler = (_request, response) => {
      response.writeHead(200);
      for (const event of [
        { type: 'ADDED', object: node('a', '1') },
        { type: 'ERROR', object: status },
        { type: 'ADDED', object: node('b', '2') },
      ]) {
        response.write(`${JSON.stringify(event)}\n`);
      }
    };
    const { events, ended } = watchNodes();
    expect(await ended).toMatchObject({ name: 'StatusError', code: 410 });
    expect(events.map((event) => event.object.metadata.name)).toEqual(['a']);
  });

  it('ends with the refusal when it is not accepted', async () => {
    handler = (_request, response) =>
      json(response, 403, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        reason: 'Forbidden',
        message: 'no',
        code: 403,
      });
    expect(await watchNodes().ended).toMatchObject({ name: 'StatusError', code: 403, message: 'no' });
  });

  it.each<[string, Handler]>([
    [
      'the connection is cut',
      (request, response) => {
        response.writeHead(200);
        response.write(`${JSON.stringify({ type: 'ADDED', object: node('a', '1') })}\n`, () =>
          request.socket.destroy(),
        );
      },
    ],
    [
      'a line is no event',
      (_request, response) => {
        response.writeHead(200);
        response.write('{"type":"ADDED"\n');
      },
    ],
  ])('ends with a ConnectionError when %s', async (_what, one) => {
    handler = one;
    expect(await watchNodes().ended).toBeInstanceOf(ConnectionError);
  });

  it('is silent after stop, and the server sees the connection go', async () => {
    const closed = new Promise<void>((resolve) => {
      handler = (request, response) => {
        request.socket.on('close', () => resolve());
        response.writeHead(200);
        for (const name of ['a', 'b'])
          response.write(`${JSON.stringify({ type: 'ADDED', object: node(name, '1') })}\n`);
      };
    });
    let ends = 0;
    const watched: Watched = watchNodes({}, () => watched.stop());
    void watched.ended.then(() => ends++);
    await closed;
    expect([watched.events.length, ends]).toEqual([1, 0]);
  });

  it('ends when the client is closed', async () => {
    handler = (_request, response) => {
      response.writeHead(200);
      response.write(`${JSON.stringify({ type: 'ADDED', object: node('a', '1') })}\n`);
    };
    const { ended } = watchNodes({}, () => client.close());
    expect(await ended).toBeInstanceOf(ConnectionError);
  });
});
