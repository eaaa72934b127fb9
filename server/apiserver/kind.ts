import type {
  FieldError,
  KubeObject,
  NonResourceRule,
  ResourceRule,
  UnstructuredObject,
  UserInfo,
} from '#server/kube';
import type { JsonSchema } from './custom-resources/json-schema.ts';

/**
 * Everything the API server knows of one kind: a row of its table. Adding a kind is adding a row (one file in `kinds/`
 * per group of related kinds); CustomResourceDefinitions become rows at run time.
 */
export interface KindDefinition {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Key into the field data (`core/v1#Pod`); undefined for custom resources, which carry `schema`. */
  readonly schemaType: string | undefined;
  /** The structural schema of a custom resource (and of the kind CustomResourceDefinition itself). */
  readonly customSchema?: JsonSchema;
  /** What every request for the kind is warned of (a `Warning:` header): deprecated API versions. */
  readonly deprecation?: string;
  /** Verbs offered, as discovery lists them. Default: all eight. */
  readonly verbs?: readonly string[];
  /** Status is a subresource: writes to the main resource ignore it, writes to `/status` ignore the rest. */
  readonly hasStatus: boolean;
  /** `/scale`. Paths are dotted, below the object. */
  readonly scale?: { specReplicas: string; statusReplicas: string; selector?: string };
  /** Other subresources that have handlers of their own (`log`, `exec`, `binding`, `token`, `eviction` …). */
  readonly subresources?: readonly SubresourceDefinition[];
  readonly strategy: Strategy;
  readonly columns: readonly Column[];
  /** Field selectors beyond metadata.name and metadata.namespace: name → value of an object. */
  readonly selectableFields?: Readonly<Record<string, (object: UnstructuredObject) => string>>;
  /**
   * Kinds that are answered, not stored (reviews, tokens). `create` returns the answer.
   */
  readonly virtual?: (context: RequestContext, object: UnstructuredObject) => Promise<UnstructuredObject>;
}

export interface SubresourceDefinition {
  readonly name: string;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

/** What the handlers ask of a kind. Every function gets a private copy it may change, never a stored object. */
export interface Strategy {
  /** Names: `dns-subdomain` (default), `dns-label`, `dns1035-label`, `path-segment` (RBAC). */
  readonly nameRule?: 'dns-subdomain' | 'dns-label' | 'dns1035-label' | 'path-segment';
  /** PUT and apply of an absent object create it (Lease, Endpoints, Node/… as upstream). */
  readonly allowCreateOnUpdate?: boolean;
  /** PUT without resourceVersion is allowed. */
  readonly allowUnconditionalUpdate?: boolean;
  /** Fills every default upstream fills; also run when reading objects that were stored before a default existed. */
  defaults?(object: UnstructuredObject): void;
  /** Clears what a creator may not set (status …). Metadata is handled by the machinery. */
  prepareForCreate?(object: UnstructuredObject, context: RequestContext): void | Promise<void>;
  prepareForUpdate?(
    object: UnstructuredObject,
    old: UnstructuredObject,
    context: RequestContext,
  ): void | Promise<void>;
  validate?(object: UnstructuredObject): FieldError[];
  validateUpdate?(object: UnstructuredObject, old: UnstructuredObject): FieldError[];
  validateStatusUpdate?(object: UnstructuredObject, old: UnstructuredObject): FieldError[];
  /** Warnings for the answer's `Warning:` headers. */
  warnings?(object: UnstructuredObject): string[];
  /** Does this change raise metadata.generation? Default: anything outside metadata and status differs. */
  raisesGeneration?(object: UnstructuredObject, old: UnstructuredObject): boolean;
  /** Kinds with graceful deletion (pods): seconds to wait, or 0 to remove at once. */
  gracePeriod?(object: UnstructuredObject, asked: number | undefined): number;
  /** Finalizers put on an object by its first delete: what the server itself has to do before it may go. */
  readonly finalizersOnDelete?: readonly string[];
  /** The object is marked as being deleted but still exists (finalizers, grace): what its kind shows of that. */
  prepareForDelete?(object: UnstructuredObject, context: RequestContext): void;
  /** What was allocated in prepareFor… is given back when the object is gone or the write failed (IPs, ports). */
  release?(object: UnstructuredObject, context: RequestContext): void;
  /**
   * Gives back what `dropped` holds and `kept` does not: after an update that failed (dropped: the new state) and after
   * one that succeeded (dropped: the old state). So prepareForUpdate only takes, never gives back.
   */
  releaseDifference?(dropped: UnstructuredObject, kept: UnstructuredObject, context: RequestContext): void;
}

/** What a running request carries. */
export interface RequestContext {
  readonly user: UserInfo;
  readonly verb: string;
  readonly dryRun: boolean;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  readonly server: ServerFacilities;
}

/** What strategies and virtual kinds may ask of the server. */
export interface ServerFacilities {
  /** Wall-clock, milliseconds. */
  now(): number;
  uid(): string;
  suffix(length: number): string;
  /** Reads one stored object, or undefined. */
  read(
    resource: { group: string; plural: string },
    namespace: string | undefined,
    name: string,
  ): UnstructuredObject | undefined;
  list(resource: { group: string; plural: string }, namespace?: string): UnstructuredObject[];
  allocators: Allocators;
  /** May `user` do this? Models authorizer.Authorize: `reason` words RBAC's answer. */
  authorize(attributes: AuthorizationAttributes): { allowed: boolean; reason: string };
  /** What `user` may do in `namespace`, as SelfSubjectRulesReview lists it (`Authorizer.rulesFor`). */
  rulesFor(user: UserInfo, namespace: string): EffectiveRules;
  tokens: TokenIssuer;
}

/** Service addresses and node ports; taken synchronously so that two creates never get the same one. */
export interface Allocators {
  clusterIp: Allocator<string>;
  nodePort: Allocator<number>;
}

export interface Allocator<T> {
  /** The range as text, for error messages: `10.96.0.0/16`, `30000-32767`. */
  readonly range: string;
  /** Takes a free one at random; undefined when the range is exhausted. */
  allocate(): T | undefined;
  /** Takes this one: `'taken'` when it is in use, `'out-of-range'` when it does not belong. */
  claim(value: T): 'ok' | 'taken' | 'out-of-range';
  release(value: T): void;
}

/** Rules in force for one user in one namespace; `evaluationError` names roles that bindings refer to in vain. */
export interface EffectiveRules {
  resourceRules: ResourceRule[];
  nonResourceRules: NonResourceRule[];
  incomplete: boolean;
  evaluationError?: string;
}

export interface AuthorizationAttributes {
  user: UserInfo;
  verb: string;
  /** Set for resource requests. */
  resource?: {
    group: string;
    version?: string | undefined;
    plural: string;
    subresource?: string | undefined;
    namespace?: string | undefined;
    name?: string | undefined;
  };
  /**
   * Of list, watch and deletecollection: the field selector's requirements (an empty array: there is no selector). The
   * Node authorizer lets a kubelet list the pods of its own node only. Undefined: not known, not looked at.
   */
  fieldRequirements?: readonly { field: string; operator: string; value: string }[];
  /** Set for non-resource requests. */
  path?: string;
}

export interface TokenIssuer {
  /** Signs a service-account token (TokenRequest). */
  issue(options: {
    namespace: string;
    serviceAccount: { name: string; uid: string };
    audiences?: readonly string[];
    expirationSeconds: number;
    bound?: { kind: string; name: string; uid: string };
  }): Promise<{ token: string; expirationTimestamp: string }>;
  /** Audiences a token has unless it is asked for others. */
  readonly defaultAudiences?: readonly string[];
  /** Checks a bearer token as the authenticators do; undefined when it proves nobody. */
  review(token: string, audiences?: readonly string[]): Promise<UserInfo | undefined>;
}

/** A Table column: header and cell. `priority` 0 is always shown, 1 only with `-o wide`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description: string;
  readonly priority: number;
  /** `now` is wall-clock milliseconds, for ages. */
  cell(object: UnstructuredObject, now: number): string | number | boolean | null;
}

/** The last path element of helper typing: a kind's object as its own shape. */
export function as<T extends KubeObject>(object: KubeObject): T {
  return object as T;
}
