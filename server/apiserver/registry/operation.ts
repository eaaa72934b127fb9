import type { Clock, Ids, Logger } from '#server/base';
import type { Status, StructSchema, TypeSchema, UnstructuredObject, UserInfo } from '#server/kube';
import type { AdmissionAttributes } from '../admission/chain.ts';
import type { KindDefinition, RequestContext, ServerFacilities } from '../kind.ts';
import type { KindTable } from '../kind-table.ts';
import type { ObjectStorage, StoredBytes } from '../storage.ts';

/** What the registry needs of the server around it. */
export interface RegistryEnvironment {
  readonly storage: ObjectStorage;
  readonly kinds: KindTable;
  readonly admission: { admit(attributes: AdmissionAttributes): Promise<void> };
  readonly facilities: ServerFacilities;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  /** Of service-account tokens: their audience when none is asked for. */
  readonly issuer: string;
  schemaOf(kind: KindDefinition): TypeSchema;
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

/** One authorized request to a resource, however it came in. */
export interface Operation {
  readonly user: UserInfo;
  readonly userAgent: string;
  readonly verb: Verb;
  readonly kind: KindDefinition;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: Readonly<Record<string, string>>;
  /** The decoded body; never modified. Undefined: there was none. */
  readonly body: unknown;
  /** Fields that came more than once: `duplicate field "spec.x"`. */
  readonly duplicates: readonly string[];
  /** Media type of a patch. */
  readonly contentType: string | undefined;
  /** Adds a `Warning:` header to the answer. */
  warn(text: string): void;
}

/** The answer to a request for one object. */
export interface ObjectAnswer {
  readonly code: number;
  /** Frozen. */
  readonly object: UnstructuredObject | Status;
  /** The same as stored bytes, when there are any. */
  readonly stored?: StoredBytes;
  /** The kind of `object`; undefined for a Status and for kinds of subresources (Scale, TokenRequest …). */
  readonly kind?: KindDefinition;
}

export function requestContext(env: RegistryEnvironment, op: Operation, dryRun: boolean): RequestContext {
  return {
    user: op.user,
    verb: op.verb,
    dryRun,
    subresource: op.subresource,
    namespace: op.namespace,
    server: env.facilities,
  };
}

/** `fieldManager`, or what precedes the slash in the user agent. Models managerOrUserAgent of apiserver's handlers. */
export function managerOf(op: Operation): string {
  const asked = op.query['fieldManager'];
  if (asked) return asked;
  const printable = (op.userAgent.split('/')[0] ?? '').replace(/[^\x20-\x7e]/g, '');
  return printable.slice(0, MAX_MANAGER_LENGTH) || 'unknown';
}

export const MAX_MANAGER_LENGTH = 128;

export function isStructSchema(schema: TypeSchema): schema is StructSchema {
  return schema.kind === 'struct';
}
