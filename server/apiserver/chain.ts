import type { Clock } from '#server/base';
import {
  failure,
  formatApiVersion,
  internalError,
  type KubeList,
  methodNotAllowed,
  StatusError,
  type UnstructuredObject,
} from '#server/kube';
import { StoreClosedError } from '#server/store';
import type { Authorize } from './access.ts';
import type { AuditLog, AuditRecord } from './audit.ts';
import { authorizationFailure } from './authz/authorizer.ts';
import { selectorAttributes } from './authz/request-selectors.ts';
import type { AuthorizationAttributes, KindDefinition } from './kind.ts';
import { deleteCollection } from './registry/delete.ts';
import type { ObjectAnswer, Operation, RegistryEnvironment } from './registry/operation.ts';
import { asServed, type ListAnswer, listObjects } from './registry/read.ts';
import { handleObject } from './registry/registry.ts';
import type { RunningWatch, WatchDesk, WatchReader } from './registry/watch.ts';

export type Answer = ({ type: 'object' } & { answer: ObjectAnswer }) | { type: 'list'; list: ListAnswer };

/** What every request passes, from a socket or from this process: authorization, the registry, audit. */
export interface Chain {
  /** Runs anything but a watch. Rejects with StatusError only. */
  run(op: Operation): Promise<Answer>;
  /** Throws StatusError. */
  watch(op: Operation, reader: WatchReader): RunningWatch;
  /** Throws 403. */
  authorize(
    op: Pick<Operation, 'user' | 'verb' | 'kind' | 'namespace' | 'name' | 'subresource'> &
      Partial<Pick<Operation, 'query'>>,
  ): void;
  /** Notes in the audit log a request that does not pass `run` or `watch` (a log, a stream). `start`: clock milliseconds. */
  note(op: Operation, start: number, code: number): void;
  readonly env: RegistryEnvironment;
  readonly audit: AuditLog;
  readonly authorizer: Authorize;
}

export interface ChainOptions {
  env: RegistryEnvironment;
  desk: WatchDesk;
  authorizer: Authorize;
  audit: AuditLog;
  clock: Clock;
}

const DEFAULT_VERBS: readonly string[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

export function verbsOf(kind: KindDefinition): readonly string[] {
  return kind.verbs ?? (kind.virtual ? ['create'] : DEFAULT_VERBS);
}

export function createChain(options: ChainOptions): Chain {
  const { env, desk, authorizer, audit, clock } = options;
  const finish = (op: Operation, start: number, code: number): void => {
    audit.record(recordOf(op, start, clock.now() - start, code));
  };
  const authorize: Chain['authorize'] = (op) => {
    const { kind } = op;
    const selected = selectorAttributes(op.verb, op.query?.fieldSelector);
    const name = op.name ?? selected.name;
    // A namespace is in itself, as upstream's request info has it.
    const namespace =
      kind.group === '' && kind.plural === 'namespaces' && op.name !== undefined ? op.name : op.namespace;
    const attributes: AuthorizationAttributes = {
      user: op.user,
      verb: op.verb,
      resource: {
        group: kind.group,
        version: kind.version,
        plural: kind.plural,
        subresource: op.subresource,
        namespace,
        name,
      },
      ...(selected.fieldRequirements ? { fieldRequirements: selected.fieldRequirements } : {}),
    };
    const decision = authorizer(attributes);
    if (!decision.allowed) throw authorizationFailure(attributes, decision.reason);
  };
  return {
    env,
    audit,
    authorizer,
    authorize,
    note: finish,
    async run(op) {
      const start = clock.now();
      try {
        authorize(op);
        checkVerb(op);
        const answer = await runAuthorized(env, op);
        finish(op, start, answer.type === 'object' ? answer.answer.code : 200);
        return answer;
      } catch (error) {
        const refusal = asStatusError(env, op, error);
        finish(op, start, refusal.code);
        throw refusal;
      }
    },
    watch(op, reader) {
      const start = clock.now();
      let over = false;
      const ended = (code: number): void => {
        if (over) return;
        over = true;
        finish(op, start, code);
      };
      try {
        authorize(op);
        checkVerb(op);
        const running = desk.start(op, {
          item: (item) => reader.item(item),
          bookmark: (object) => reader.bookmark(object),
          end(error) {
            ended(error?.code ?? 200);
            reader.end(error);
          },
        });
        return {
          stop() {
            running.stop();
            ended(200);
          },
        };
      } catch (error) {
        const refusal = asStatusError(env, op, error);
        ended(refusal.code);
        throw refusal;
      }
    },
  };
}

async function runAuthorized(env: RegistryEnvironment, op: Operation): Promise<Answer> {
  if (op.verb === 'list') return { type: 'list', list: listObjects(env, op) };
  if (op.verb === 'deletecollection') {
    const deleted = await deleteCollection(env, op);
    return { type: 'list', list: { ...deleted, continueToken: '', remaining: undefined } };
  }
  return { type: 'object', answer: await handleObject(env, op) };
}

function checkVerb(op: Operation): void {
  if (op.subresource !== undefined) {
    if (!offersSubresource(op.kind, op.subresource))
      throw failure(404, 'NotFound', 'the server could not find the requested resource', {});
    return;
  }
  if (!verbsOf(op.kind).includes(op.verb)) throw methodNotAllowed(op.kind, op.verb);
}

export function offersSubresource(kind: KindDefinition, subresource: string): boolean {
  if (subresource === 'status') return kind.hasStatus;
  if (subresource === 'scale') return kind.scale !== undefined;
  return kind.subresources?.some(({ name }) => name === subresource) ?? false;
}

/** Anything that was thrown, as what the client is told; what is not a refusal is our own bug, and logged. */
export function asStatusError(
  env: Pick<RegistryEnvironment, 'log'>,
  op: object,
  error: unknown,
): StatusError {
  if (error instanceof StatusError) return error;
  if (error instanceof StoreClosedError)
    return failure(503, 'ServiceUnavailable', 'the server is shutting down');
  const { verb, namespace, name, kind } = op as Partial<Operation>;
  env.log.error(
    { err: error, verb, resource: kind?.plural, namespace, name },
    'a request failed on a fault of the server',
  );
  return internalError(error instanceof Error ? error.message : String(error));
}

function recordOf(op: Operation, time: number, latency: number, code: number): AuditRecord {
  return {
    time,
    user: op.user.name,
    userAgent: op.userAgent,
    verb: op.verb,
    group: op.kind.group,
    resource: op.kind.plural,
    ...(op.subresource !== undefined ? { subresource: op.subresource } : {}),
    ...(op.namespace !== undefined ? { namespace: op.namespace } : {}),
    ...(op.name !== undefined ? { name: op.name } : {}),
    code,
    latency,
  };
}

/** A list as an object: frozen, its items shared. */
export function listObject(
  env: RegistryEnvironment,
  op: Pick<Operation, 'kind'>,
  list: ListAnswer,
): KubeList<UnstructuredObject> {
  return Object.freeze({
    kind: op.kind.listKind,
    apiVersion: formatApiVersion(op.kind.group, op.kind.version),
    metadata: Object.freeze(listMeta(list)),
    items: Object.freeze(
      list.entries.map((entry) => asServed(env, op, env.storage.decode(entry))),
    ) as UnstructuredObject[],
  });
}

export function listMeta(list: ListAnswer): {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
} {
  return {
    resourceVersion: String(list.revision),
    ...(list.continueToken ? { continue: list.continueToken } : {}),
    ...(list.remaining !== undefined ? { remainingItemCount: list.remaining } : {}),
  };
}
