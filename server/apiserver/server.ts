import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Ids, Logger } from '#server/base';
import type { ApiBackend } from '#server/client';
import { builtinSchema, customSchema, type TypeSchema, type UserInfo } from '#server/kube';
import type { Store, StoreWatch } from '#server/store';
import { createAdmission } from './admission/chain.ts';
import { type AuditRecord, createAuditLog } from './audit.ts';
import type { Credentials } from './authn/authenticator.ts';
import { reviewKinds } from './authz/review-kinds.ts';
import { createBackend } from './backend.ts';
import { bootstrapCluster, keepKubernetesService } from './bootstrap.ts';
import { createChain } from './chain.ts';
import { crdKind } from './custom-resources/crd-kind.ts';
import { trackCustomResources } from './custom-resources-tracker.ts';
import { createEndpoints } from './endpoints/endpoints.ts';
import { createFacilities } from './facilities.ts';
import type { HttpContext } from './http-context.ts';
import type { KindDefinition } from './kind.ts';
import { createKindTable } from './kind-table.ts';
import { builtinKinds } from './kinds/table.ts';
import type { KubeletDirectory } from './kubelet-api.ts';
import { createWatchHub } from './registry/hub.ts';
import type { RegistryEnvironment } from './registry/operation.ts';
import { createWatchDesk } from './registry/watch.ts';
import { createObjectStorage } from './storage.ts';

export interface ApiServerOptions {
  /** For logs. */
  cluster: string;
  store: Store;
  clock: Clock;
  ids: Ids;
  log: Logger;
  /** Authorities whose client certificates are believed. */
  clientCaPem: readonly string[];
  /** ECDSA P-256. */
  serviceAccount: { issuer: string; signingKeyPem: string; verifyingKeysPem: readonly string[] };
  serviceCidr: string;
  nodePortRange?: string;
  kubelets: KubeletDirectory;
  /** The flags the server pretends to run with; shown by nothing yet. */
  flags?: readonly string[];
  /** Default true: creates namespaces, RBAC, priority classes, the `kubernetes` Service. */
  bootstrap?: boolean;
  /** Where clients of the cluster reach this server; absent: the `kubernetes` Service has no endpoints. */
  advertise?: { ip: string; port: number };
  audit?: (record: AuditRecord) => void;
}

/** One cluster's API server. */
export interface ApiServer {
  /** For callers in this process. */
  readonly backend: ApiBackend;
  /** Answers one HTTP request; never rejects. */
  handle(request: IncomingMessage, response: ServerResponse, context: HttpContext): Promise<void>;
  /** Answers one HTTP upgrade (exec, attach); never rejects. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, context: HttpContext): Promise<void>;
  /** Who these credentials prove, or undefined. */
  authenticate(credentials: Credentials): Promise<UserInfo | undefined>;
  readonly audit: { recent(): AuditRecord[] };
  readonly ready: boolean;
  /** Ends watches and streams; idempotent. The store stays open. */
  close(): Promise<void>;
}

/**
 * Starts a server over a store: resolves once it can be asked, bootstrapped. Rejects when the store refuses writes.
 */
export async function createApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { store, clock, ids } = options;
  const log = options.log.child({ cluster: options.cluster });
  const storage = createObjectStorage(store);
  const kinds = createKindTable(BUILT_IN);
  const hub = createWatchHub(storage);

  const { facilities, authorizer, authenticate } = createFacilities(storage, options);
  const env: RegistryEnvironment = {
    storage,
    kinds,
    admission: createAdmission(),
    facilities,
    clock,
    ids,
    log,
    issuer: options.serviceAccount.issuer,
    schemaOf,
  };
  const rbac = store.watch(RBAC_PREFIX, store.revision, (event) =>
    authorizer.invalidate(rbacChange(event.key)),
  );
  const definitions = trackCustomResources(env, kinds, hub, log);
  let kept: StoreWatch | undefined;
  if (options.bootstrap ?? true) {
    const bootstrap = {
      env,
      clientCaPem: options.clientCaPem,
      serviceCidr: options.serviceCidr,
      advertise: options.advertise,
    };
    await bootstrapCluster(bootstrap);
    kept = keepKubernetesService(bootstrap);
  }
  let ready = true;
  const audit = createAuditLog(options.audit);
  const desk = createWatchDesk(env, hub, clock);
  const chain = createChain({
    env,
    desk,
    authorizer: (attributes) => authorizer.authorize(attributes),
    audit,
    clock,
  });
  const endpoints = createEndpoints({
    chain,
    kinds,
    clock,
    ids,
    log,
    authenticate,
    kubelets: options.kubelets,
    serviceAccount: options.serviceAccount,
  });
  const backend = createBackend({
    chain,
    kinds,
    isOpen: () => ready,
    raw: (user, path) => endpoints.raw(user, path),
  });
  return {
    backend,
    authenticate,
    audit,
    handle: (request, response, context) => endpoints.handle(request, response, context),
    upgrade: (request, socket, head, context) => endpoints.upgrade(request, socket, head, context),
    get ready() {
      return ready;
    },
    async close() {
      if (!ready) return;
      ready = false;
      rbac.stop();
      kept?.stop();
      definitions.stop();
      await endpoints.close();
      hub.close();
    },
  };
}

const RBAC_PREFIX = '/registry/rbac.authorization.k8s.io/';

function rbacChange(key: string): { plural: string; namespace?: string; name: string } {
  const [plural = '', ...rest] = key.slice(RBAC_PREFIX.length).split('/');
  // Names of RBAC objects may hold anything but a slash, so what precedes the last one is the namespace.
  const name = rest.pop() ?? '';
  const namespace = rest[0];
  return { plural, ...(namespace !== undefined ? { namespace } : {}), name };
}

const BUILT_IN: readonly KindDefinition[] = [...builtinKinds, ...reviewKinds, crdKind];

const schemas = new WeakMap<KindDefinition, TypeSchema>();
const ANYTHING: TypeSchema = { kind: 'any' };

function schemaOf(kind: KindDefinition): TypeSchema {
  if (kind.schemaType !== undefined) return builtinSchema(kind.schemaType);
  const known = schemas.get(kind);
  if (known) return known;
  const schema = kind.customSchema ? customSchema(kind.customSchema) : ANYTHING;
  schemas.set(kind, schema);
  return schema;
}
