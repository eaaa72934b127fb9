import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAuthority, issueCertificate } from '#server/pki';
import { startLab } from './lab.ts';
import type { Row } from './row.ts';

const CONNECTIONS = 32;
const SECONDS = 6;

interface Target {
  url: string;
  ca: string;
  cert?: string;
  key?: string;
}

/** Durable creates of ConfigMaps over HTTPS, against a bare HTTPS server that parses, stamps and commits the same JSON. */
export async function benchCreates(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-creates-'));
  const lab = await startLab();
  try {
    const { server, caPem = '', certPem = '', keyPem = '' } = lab.managementConfig;
    const ours: Target = {
      url: `${server}/api/v1/namespaces/default/configmaps`,
      ca: caPem,
      cert: certPem,
      key: keyPem,
    };
    const bare = await startBareServer(folder);
    try {
      // Twice each, alternating; the first pass warms both up.
      await measure(ours);
      await measure(bare.target);
      const value = await measure(ours);
      const floor = await measure(bare.target);
      return [
        {
          name: `durable creates/s, ${CONNECTIONS} connections`,
          value,
          unit: '/s',
          floor,
          ratio: value / floor,
          target: '>= 0.35 of a bare HTTPS + JSON + SQLite server',
        },
      ];
    } finally {
      bare.stop();
    }
  } finally {
    await lab.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startBareServer(folder: string): Promise<{ target: Target; stop(): void }> {
  const now = Date.now();
  const authority = await createAuthority({ commonName: 'bench', now });
  const serving = await issueCertificate({
    authority,
    commonName: 'bench-server',
    usages: ['server'],
    ips: ['127.0.0.1'],
    now,
  });
  const child = fork(fileURLToPath(new URL('./bare-server.ts', import.meta.url)), [join(folder, 'bare.db')], {
    execArgv: ['--import', 'tsx'],
  });
  child.send(serving);
  const port = await new Promise<number>((resolve) =>
    child.once('message', (message) => resolve(message as number)),
  );
  return {
    target: { url: `https://127.0.0.1:${port}/`, ca: authority.certPem },
    stop: () => void child.kill(),
  };
}

let created = 0;

/** Creates per second over CONNECTIONS kept-alive connections. */
async function measure(target: Target): Promise<number> {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CONNECTIONS,
    ca: target.ca,
    cert: target.cert,
    key: target.key,
  });
  const end = performance.now() + SECONDS * 1000;
  let count = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const name = `bench-${created++}`;
      await post(
        target.url,
        agent,
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name, namespace: 'default' },
          data: { key: 'value' },
        }),
      );
      count++;
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  agent.destroy();
  return count / ((performance.now() - begun) / 1000);
}

function post(url: string, agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      (response) => {
        response.resume();
        response.once('end', () =>
          response.statusCode === 201 ? resolve() : reject(new Error(`status ${response.statusCode}`)),
        );
      },
    );
    call.once('error', reject);
    call.end(body);
  });
}
