import { failure } from '#server/kube';

/** How an answer is to be written. */
export interface OutputFormat {
  readonly encoding: 'json' | 'yaml';
  readonly as: 'object' | 'table' | 'partial';
  /** `v1` or `v1beta1` of meta.k8s.io, for `as`. */
  readonly version: string;
  readonly pretty: boolean;
}

export interface AcceptClause {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

const OFFERED = ['application/json', 'application/yaml'];
const MAX_CLAUSES = 32;

/** The clauses of an Accept header, best first (client's order among equals). */
export function parseAccept(header: string | undefined): AcceptClause[] {
  if (!header) return [{ type: '*/*', parameters: {}, quality: 1 }];
  const clauses: AcceptClause[] = [];
  for (const text of header.split(',').slice(0, MAX_CLAUSES)) {
    const [type = '', ...rest] = text.split(';').map((part) => part.trim());
    const parameters: Record<string, string> = {};
    for (const part of rest) {
      const equals = part.indexOf('=');
      if (equals > 0)
        parameters[part.slice(0, equals).toLowerCase()] = part.slice(equals + 1).replace(/^"|"$/g, '');
    }
    const quality = Number(parameters['q'] ?? 1);
    if (type)
      clauses.push({ type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 0 : quality });
  }
  return clauses.sort((a, b) => b.quality - a.quality);
}

/** Remembers the headers seen: clients send a handful. */
const formats = new Map<string, OutputFormat>();
const MAX_REMEMBERED = 64;

/**
 * The representation an Accept header asks for. Throws 406 in upstream's words when none is offered (protobuf alone).
 * Models apiserver/pkg/endpoints/handlers/negotiation.NegotiateMediaTypeOptions.
 */
export function negotiate(accept: string | undefined, pretty: boolean): OutputFormat {
  const key = `${pretty ? 1 : 0}${accept ?? ''}`;
  const known = formats.get(key);
  if (known) return known;
  const format = choose(parseAccept(accept), pretty);
  if (formats.size >= MAX_REMEMBERED) formats.clear();
  formats.set(key, format);
  return format;
}

function choose(clauses: readonly AcceptClause[], pretty: boolean): OutputFormat {
  for (const { type, parameters } of clauses) {
    const encoding =
      type === 'application/json' || type === '*/*' || type === 'application/*'
        ? 'json'
        : type === 'application/yaml' || type === 'application/x-yaml'
          ? 'yaml'
          : undefined;
    if (!encoding) continue;
    const asked = parameters['as'];
    if (asked === undefined) return { encoding, as: 'object', version: 'v1', pretty };
    const version = parameters['v'] ?? 'v1';
    if (parameters['g'] !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) continue;
    if (asked === 'Table') return { encoding, as: 'table', version, pretty };
    if (asked === 'PartialObjectMetadata' || asked === 'PartialObjectMetadataList') {
      return { encoding, as: 'partial', version, pretty };
    }
  }
  throw notAcceptable(OFFERED);
}

export function notAcceptable(offered: readonly string[]): Error {
  return failure(406, 'NotAcceptable', `only the following media types are accepted: ${offered.join(', ')}`);
}
