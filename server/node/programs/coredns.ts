import { silentLogger } from '#server/base';
import { createInformerFactory } from '#server/client';
import { endpointSlices, services } from '#server/kube';
import type { Process, Program } from '../contract.ts';
import { readText } from '../files/mounted-files.ts';
import { joinPath } from '../files/path.ts';
import { decodeDnsMessage, encodeDnsMessage, RESPONSE_CODES } from '../network/dns-message.ts';
import { answerFromZone, BY_SERVICE, type ZoneData } from './coredns-zone.ts';
import { serveHttp, untilStopped } from './http-server.ts';
import { inClusterConfig } from './in-cluster.ts';

const VERSION = '1.13.1';

interface Corefile {
  port: number;
  zone: string;
  ttl: number;
  logs: boolean;
  health: number | undefined;
  ready: number | undefined;
}

/** What this CoreDNS follows of a Corefile: the port, the `kubernetes` plugin's zone and ttl, `log`, `health`, `ready`. */
export function parseCorefile(text: string): Corefile {
  const port = /^\s*[^\s{]*:(\d+)\s*\{/m.exec(text)?.[1];
  const plugin = /^\s*kubernetes\s+(\S+)[^{\n]*(?:\{([^}]*)\})?/m.exec(text);
  const ttl = /^\s*ttl\s+(\d+)/m.exec(plugin?.[2] ?? '')?.[1];
  const number = (name: string, fallback: number): number | undefined => {
    const match = new RegExp(`^\\s*${name}(?:\\s+\\S*:(\\d+))?\\s*(?:\\{|$)`, 'm').exec(text);
    return match ? Number(match[1] ?? fallback) : undefined;
  };
  return {
    port: Number(port ?? 53),
    zone: (plugin?.[1] ?? 'cluster.local').replace(/\.$/, ''),
    ttl: Number(ttl ?? 5),
    logs: /^\s*log\s*$/m.test(text),
    health: number('health', 8080),
    ready: number('ready', 8181),
  };
}

/** CoreDNS for a cluster: answers from the Services and EndpointSlices its service account may watch; there is no other DNS to forward to. */
export const coredns: Program = {
  async run(process) {
    const at = process.argv.indexOf('-conf');
    const path = joinPath(process.cwd, process.argv[at + 1] ?? 'Corefile');
    const config = parseCorefile(readText(process.files, path) ?? '');
    const client = process.dialer.dial(inClusterConfig(process), { userAgent: `CoreDNS/${VERSION}` });
    const informers = createInformerFactory({ client, clock: process.clock, log: silentLogger });
    const serviceInformer = informers.informer(services);
    const sliceInformer = informers.informer(endpointSlices);
    sliceInformer.addIndex(BY_SERVICE, (slice) => {
      const name = slice.metadata.labels?.['kubernetes.io/service-name'];
      return name === undefined ? [] : [`${slice.metadata.namespace}/${name}`];
    });
    informers.start();
    const data: ZoneData = {
      zone: config.zone,
      ttl: config.ttl,
      services: serviceInformer,
      slices: sliceInformer,
      startedAt: process.clock.now(),
    };
    const isReady = (): boolean => serviceInformer.hasSynced && sliceInformer.hasSynced;
    const listeners = [
      process.network.listenDatagrams(config.port, async (message, remote) =>
        answer(process, config, data, isReady, message, remote),
      ),
    ];
    const status = (port: number | undefined, verdict: () => { status: number; body: string }): void => {
      if (port === undefined) return;
      listeners.push(
        serveHttp(
          process.network,
          port,
          (_request, response) => {
            const { status: code, body } = verdict();
            response.writeHead(code, { 'Content-Type': 'text/plain' });
            response.end(body);
          },
          { health: verdict },
        ),
      );
    };
    status(config.health, () => ({ status: 200, body: 'OK' }));
    status(config.ready, () =>
      isReady() ? { status: 200, body: 'OK' } : { status: 503, body: 'kubernetes' },
    );
    if (!isReady())
      process.stdout.write('[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server\n');
    process.stdout.write(`.:${config.port}\nCoreDNS-${VERSION}\nlinux/amd64, go1.25.2, 1db4568\n`);
    try {
      await untilStopped(process);
    } finally {
      process.stdout.write('[INFO] SIGTERM: Shutting down servers then terminating\n');
      for (const listener of listeners) listener.close();
      informers.stop();
    }
    return 0;
  },
};

async function answer(
  process: Process,
  config: Corefile,
  data: ZoneData,
  isReady: () => boolean,
  bytes: Uint8Array,
  remote: { ip: string; port: number },
): Promise<Uint8Array | undefined> {
  const query = decodeDnsMessage(bytes);
  const question = query.questions[0];
  if (!question || query.response) return undefined;
  const found = answerFromZone(question, data);
  const result = found
    ? isReady()
      ? found
      : { code: RESPONSE_CODES.SERVFAIL, answers: [], authorities: [], authoritative: false }
    : { code: RESPONSE_CODES.NXDOMAIN, answers: [], authorities: [], authoritative: false };
  const message = encodeDnsMessage({
    id: query.id,
    response: true,
    authoritative: result.authoritative,
    recursionDesired: query.recursionDesired,
    recursionAvailable: true,
    code: result.code,
    questions: query.questions,
    answers: result.answers,
    authorities: result.authorities,
  });
  if (config.logs)
    process.stdout.write(
      `[INFO] ${remote.ip}:${remote.port} - ${query.id} "${question.type} IN ${question.name}. udp ${bytes.length} false 512" ${result.code} qr,aa,rd ${message.length} 0s\n`,
    );
  return message;
}
