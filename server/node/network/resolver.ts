import { isIP } from 'node:net';
import { NetworkError, type NetworkNamespace } from '../contract.ts';
import type { ResolverConfig } from './contract.ts';
import {
  type DnsMessage,
  decodeDnsMessage,
  encodeDnsMessage,
  RECORD_TYPES,
  RESPONSE_CODES,
} from './dns-message.ts';

const DNS_PORT = 53;
/** As glibc: seconds a server gets, and rounds over all servers. */
const SERVER_TIMEOUT = 5_000;
const ATTEMPTS = 2;
const MAX_CNAMES = 8;
/** Names the search list makes of one name. */
const MAX_CANDIDATES = 32;

/** `exchange` of a namespace, which is all a resolver needs. */
type Exchange = Pick<NetworkNamespace, 'exchange'>;

/** Which names to ask for, in order: resolv.conf's search list and ndots. */
export function candidateNames(host: string, config: Pick<ResolverConfig, 'search' | 'ndots'>): string[] {
  if (host.endsWith('.')) return [host.slice(0, -1)];
  const searched = config.search.map((suffix) => `${host}.${suffix}`);
  const dots = host.split('.').length - 1;
  return (dots >= config.ndots ? [host, ...searched] : [...searched, host]).slice(0, MAX_CANDIDATES);
}

/** One DNS question to one server. Rejects with NetworkError when it does not answer. */
export async function askDns(
  network: Exchange,
  server: string,
  name: string,
  type: number,
  options: { id: number; signal?: AbortSignal; timeout?: number },
): Promise<DnsMessage> {
  const question: DnsMessage = {
    id: options.id,
    response: false,
    authoritative: false,
    recursionDesired: true,
    recursionAvailable: false,
    code: 0,
    questions: [{ name: name.toLowerCase(), type }],
    answers: [],
    authorities: [],
  };
  const answer = await network.exchange(server, DNS_PORT, encodeDnsMessage(question), {
    timeout: options.timeout ?? SERVER_TIMEOUT,
    ...(options.signal ? { signal: options.signal } : {}),
  });
  return decodeDnsMessage(answer);
}

/** The addresses in an answer, aliases followed. */
export function addressesOf(message: DnsMessage, name: string, type: number): string[] {
  let wanted = name.toLowerCase();
  for (let i = 0; i < MAX_CNAMES; i += 1) {
    const alias = message.answers.find(
      (record) => record.name === wanted && record.type === RECORD_TYPES.CNAME,
    );
    if (!alias) break;
    wanted = alias.data.toLowerCase();
  }
  return message.answers
    .filter((record) => record.name === wanted && record.type === type)
    .map((record) => record.data);
}

/**
 * getaddrinfo of a namespace: literal addresses, /etc/hosts, then DNS with the search list. Rejects with ENOTFOUND when the
 * name does not exist and EAI_AGAIN when no server could be asked.
 */
export async function resolveName(
  network: Exchange & { readonly ips: readonly string[] },
  config: ResolverConfig | undefined,
  host: string,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  if (host === 'localhost') return ['127.0.0.1'];
  const fixed = config?.hosts?.[host];
  if (fixed !== undefined) return [fixed];
  if (!config || config.nameservers.length === 0)
    throw new NetworkError('EAI_AGAIN', `getaddrinfo EAI_AGAIN ${host}`);
  let id = 1;
  for (const name of candidateNames(host, config)) {
    const found = await lookUp(network, config.nameservers, name, id, signal);
    id += ATTEMPTS;
    if (found.length > 0) return found;
  }
  throw new NetworkError('ENOTFOUND', `getaddrinfo ENOTFOUND ${host}`);
}

async function lookUp(
  network: Exchange,
  servers: readonly string[],
  name: string,
  id: number,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    for (const server of servers) {
      try {
        const answer = await askDns(network, server, name, RECORD_TYPES.A, {
          id,
          ...(signal ? { signal } : {}),
        });
        if (answer.code === RESPONSE_CODES.NXDOMAIN) return [];
        if (answer.code === RESPONSE_CODES.NOERROR) return addressesOf(answer, name, RECORD_TYPES.A);
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error;
      }
    }
  }
  throw new NetworkError('EAI_AGAIN', `getaddrinfo EAI_AGAIN ${name}`);
}
