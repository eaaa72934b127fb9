import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createManualClock, silentLogger } from '#server/base';
import { createInformerFactory } from '#server/client';
import { createFakeBackend } from '#server/client/testing';
import { endpointSlices, services } from '#server/kube';
import { parseCorefile } from '../programs/coredns.ts';
import { answerFromZone, BY_SERVICE } from '../programs/coredns-zone.ts';
import { decodeDnsMessage, encodeDnsMessage, RECORD_TYPES, RESPONSE_CODES } from './dns-message.ts';
import { candidateNames } from './resolver.ts';

const { A, AAAA, SRV, PTR, CNAME, TXT } = RECORD_TYPES;

describe('DNS messages', () => {
  it('read back as they were written', () => {
    const label = fc.stringMatching(/^[a-z0-9-]{1,20}$/);
    const name = fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join('.'));
    const record = fc.oneof(
      fc.record({ name, type: fc.constant(A), ttl: fc.nat(1000), data: fc.ipV4() }),
      fc.record({ name, type: fc.constantFrom(CNAME, PTR), ttl: fc.nat(1000), data: name }),
      fc.record({
        name,
        type: fc.constant(SRV),
        ttl: fc.nat(1000),
        data: name.map((target) => `0 100 80 ${target}`),
      }),
    );
    fc.assert(
      fc.property(
        fc.nat(65_535),
        fc.boolean(),
        fc.record({ name, type: fc.constantFrom(A, AAAA, SRV) }),
        fc.array(record, { maxLength: 5 }),
        (id, response, question, answers) => {
          const message = {
            id,
            response,
            authoritative: true,
            recursionDesired: false,
            recursionAvailable: true,
            code: 3,
            questions: [question],
            answers,
            authorities: [],
          };
          expect(decodeDnsMessage(encodeDnsMessage(message))).toEqual(message);
        },
      ),
    );
  });

  it('refuses garbage with an error of its own', () => {
    expect(() => decodeDnsMessage(new Uint8Array([1, 2, 3]))).toThrow('malformed DNS message');
    expect(() => decodeDnsMessage(Buffer.from('000100000001000000000000c00c00010001', 'hex'))).toThrow(
      'a loop in a DNS name',
    );
  });
});

describe('search list', () => {
  it('is used for names with few dots first', () => {
    const config = { search: ['default.svc.cluster.local', 'cluster.local'], ndots: 5 };
    expect(candidateNames('hello', config)).toEqual([
      'hello.default.svc.cluster.local',
      'hello.cluster.local',
      'hello',
    ]);
    expect(candidateNames('a.b.c.d.e.f', config)[0]).toBe('a.b.c.d.e.f');
    expect(candidateNames('hello.', config)).toEqual(['hello']);
  });
});

describe('cluster zone', () => {
  it('answers as the specification says', async () => {
    const client = createFakeBackend().client();
    const port = { name: 'http', port: 80, protocol: 'TCP' };
    const create = (name: string, spec: object) =>
      client.create(services, { metadata: { name, namespace: 'default' }, spec: { ports: [port], ...spec } });
    await create('hello', { clusterIP: '10.96.45.12' });
    await create('headless', { clusterIP: 'None' });
    await create('alias', { type: 'ExternalName', externalName: 'example.com' });
    await client.create(endpointSlices, {
      metadata: { name: 'h', namespace: 'default', labels: { 'kubernetes.io/service-name': 'headless' } },
      addressType: 'IPv4',
      ports: [port],
      endpoints: [
        { addresses: ['10.244.0.9'], hostname: 'db-0', conditions: { ready: true } },
        { addresses: ['10.244.0.8'], conditions: { ready: false } },
      ],
    });
    const informers = createInformerFactory({ client, clock: createManualClock(), log: silentLogger });
    const data = {
      zone: 'cluster.local',
      ttl: 30,
      services: informers.informer(services),
      slices: informers.informer(endpointSlices),
      startedAt: 0,
    };
    data.slices.addIndex(BY_SERVICE, (slice) => [
      `${slice.metadata.namespace}/${slice.metadata.labels?.['kubernetes.io/service-name']}`,
    ]);
    informers.start();
    await informers.synced();
    const ask = (name: string, type: number): string => {
      const answer = answerFromZone({ name, type }, data);
      if (!answer) return 'elsewhere';
      return answer.code === RESPONSE_CODES.NXDOMAIN
        ? 'NXDOMAIN'
        : answer.answers.map((record) => record.data).join(', ') || 'NODATA';
    };
    expect([
      ask('hello.default.svc.cluster.local', A),
      ask('hello.default.svc.cluster.local', AAAA),
      ask('nope.default.svc.cluster.local', A),
      ask('headless.default.svc.cluster.local', A),
      ask('db-0.headless.default.svc.cluster.local', A),
      ask('_http._tcp.hello.default.svc.cluster.local', SRV),
      ask('alias.default.svc.cluster.local', A),
      ask('10-244-0-9.default.pod.cluster.local', A),
      ask('12.45.96.10.in-addr.arpa', PTR),
      ask('dns-version.cluster.local', TXT),
      ask('example.com', A),
    ]).toEqual([
      '10.96.45.12',
      'NODATA',
      'NXDOMAIN',
      '10.244.0.9',
      '10.244.0.9',
      '0 100 80 hello.default.svc.cluster.local',
      'example.com',
      '10.244.0.9',
      'hello.default.svc.cluster.local',
      '1.1.0',
      'elsewhere',
    ]);
    informers.stop();
  });

  it('reads the Corefile kubeadm writes', () => {
    expect(
      parseCorefile(
        '.:53 {\n    errors\n    health {\n       lameduck 5s\n    }\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n       pods insecure\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }\n    forward . /etc/resolv.conf\n}\n',
      ),
    ).toEqual({ port: 53, zone: 'cluster.local', ttl: 30, logs: false, health: 8080, ready: 8181 });
  });
});
