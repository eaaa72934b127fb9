import {
  type Binding,
  badRequest,
  builtinSchema,
  conflict,
  type DeleteOptions,
  failure,
  formatTime,
  invalid,
  type KubeObject,
  type Pod,
  type Status,
  type UnstructuredObject,
} from '#server/kube';
import { cloneJson, freezeJson, isRecord, shown } from '../json.ts';
import { as } from '../kind.ts';
import { shapeAsGo } from '../kinds/go-shape.ts';
import { bindPod as putOnNode } from '../kinds/pod-binding.ts';
import { deleteNamed } from './delete.ts';
import { spendBudget } from './disruption-budgets.ts';
import type { ObjectAnswer, Operation, RegistryEnvironment } from './operation.ts';
import { writeOptions } from './options.ts';
import { changeObject } from './update.ts';

/** A create below an object, on its way through admission. */
async function admitCreate(
  env: RegistryEnvironment,
  op: Operation,
  subresource: string,
  object: UnstructuredObject,
  dryRun: boolean,
): Promise<void> {
  await env.admission.admit({
    operation: 'CREATE',
    kind: op.kind,
    subresource,
    namespace: op.namespace,
    name: op.name ?? '',
    object,
    user: op.user,
    dryRun,
    server: env.facilities,
  });
}

function created(): ObjectAnswer {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
  return { code: 201, object: freezeJson(status) as Status };
}

/** The body of a subresource as its own kind, shaped as its Go struct. */
export function bodyOf(op: Operation, schemaType: string): UnstructuredObject {
  const kind = schemaType.slice(schemaType.indexOf('#') + 1);
  if (!isRecord(op.body)) throw badRequest(`the object provided is unrecognized (must be of type ${kind})`);
  if (op.body['kind'] !== undefined && op.body['kind'] !== kind) {
    throw badRequest(
      `${shown(op.body['kind'])} in version "${op.kind.version}" cannot be handled as a ${kind}`,
    );
  }
  const packageName = schemaType.slice(0, schemaType.indexOf('#'));
  const apiVersion =
    packageName === 'core/v1'
      ? 'v1'
      : packageName === 'authentication/v1'
        ? 'authentication.k8s.io/v1'
        : packageName;
  const object = { metadata: { name: '' }, ...cloneJson(op.body), apiVersion, kind } as UnstructuredObject;
  shapeAsGo(object, builtinSchema(schemaType));
  return object;
}

/**
 * POST of a Binding: puts a pod on a node. Models pkg/registry/core/pod/storage BindingREST.
 */
export async function bindPod(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> {
  const options = writeOptions(op, 'CreateOptions');
  const binding = bodyOf(op, 'core/v1#Binding');
  const name = op.name ?? binding.metadata.name;
  if (binding.metadata.name && binding.metadata.name !== name) {
    throw badRequest('name in URL does not match name in Binding object');
  }
  await admitCreate(env, { ...op, name }, 'binding', binding, options.dryRun);
  await changeObject(
    env,
    { ...op, name, subresource: 'binding' },
    {
      part: 'binding',
      managed: false,
      retry: true,
      unconditional: true,
      next: (live) => {
        const next = cloneJson(live);
        const { uid } = binding.metadata;
        if (uid && uid !== next.metadata.uid) {
          throw conflict(
            { group: '', plural: 'pods/binding' },
            name,
            `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${next.metadata.uid}`,
          );
        }
        putOnNode(as<Pod>(next), as<Binding & KubeObject>(binding), env.clock.now());
        return next;
      },
    },
    options,
  );
  return created();
}

/** POST of an Eviction: a delete that disruption budgets may refuse. Models pkg/registry/core/pod/storage/eviction.go. */
export async function evictPod(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> {
  const { dryRun: pretended } = writeOptions(op, 'CreateOptions');
  const eviction = bodyOf(op, 'policy/v1#Eviction');
  const name = op.name ?? '';
  if (eviction.metadata.name && eviction.metadata.name !== name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  await admitCreate(env, op, 'eviction', eviction, pretended);
  const options: DeleteOptions = isRecord(eviction['deleteOptions']) ? eviction['deleteOptions'] : {};
  const dryRun = pretended ? ['All'] : (options.dryRun ?? []);
  const pod = env.facilities.read(op.kind, op.namespace, name);
  if (pod) await spendBudget(env, op, as<Pod>(pod), dryRun.length > 0);
  await deleteNamed(env, { ...op, subresource: undefined }, name, { ...options, dryRun });
  return created();
}

/** POST of a TokenRequest. Models pkg/registry/core/serviceaccount/storage/token.go. */
export async function requestToken(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> {
  const { dryRun } = writeOptions(op, 'CreateOptions');
  const request = bodyOf(op, 'authentication/v1#TokenRequest');
  const name = op.name ?? '';
  const account = env.facilities.read(op.kind, op.namespace, name);
  if (!account)
    throw failure(404, 'NotFound', `serviceaccounts "${name}" not found`, { name, kind: 'serviceaccounts' });
  const spec = isRecord(request['spec']) ? request['spec'] : {};
  const seconds =
    typeof spec['expirationSeconds'] === 'number' ? spec['expirationSeconds'] : DEFAULT_TOKEN_SECONDS;
  checkExpiration(name, seconds);
  await admitCreate(env, op, 'token', request, dryRun);
  const bound = boundObject(env, op, name, spec['boundObjectRef']);
  const audiences = Array.isArray(spec['audiences']) ? spec['audiences'].map(String) : [];
  const issued = await env.facilities.tokens.issue({
    namespace: op.namespace ?? '',
    serviceAccount: { name, uid: account.metadata.uid ?? '' },
    ...(audiences.length > 0 ? { audiences } : {}),
    expirationSeconds: seconds,
    ...(bound ? { bound } : {}),
  });
  const answer = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace: op.namespace, creationTimestamp: formatTime(env.clock.now()) },
    spec: {
      audiences: audiences.length > 0 ? audiences : [env.issuer],
      expirationSeconds: seconds,
      boundObjectRef: spec['boundObjectRef'] ?? null,
    },
    status: issued,
  };
  return { code: 201, object: freezeJson(answer) as unknown as UnstructuredObject };
}

const DEFAULT_TOKEN_SECONDS = 3600;
const LEAST_TOKEN_SECONDS = 600;
const MOST_TOKEN_SECONDS = 2 ** 32;

function checkExpiration(name: string, seconds: number): void {
  const refuse = (detail: string): never => {
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, name, [
      { type: 'FieldValueInvalid', field: 'spec.expirationSeconds', value: seconds, detail },
    ]);
  };
  if (seconds < LEAST_TOKEN_SECONDS) refuse('may not specify a duration less than 10 minutes');
  if (seconds > MOST_TOKEN_SECONDS) refuse('may not specify a duration larger than 2^32 seconds');
}

const BINDABLE: Record<string, { group: string; plural: string; namespaced: boolean }> = {
  'v1/Pod': { group: '', plural: 'pods', namespaced: true },
  'v1/Secret': { group: '', plural: 'secrets', namespaced: true },
  'v1/Node': { group: '', plural: 'nodes', namespaced: false },
};

function boundObject(
  env: RegistryEnvironment,
  op: Operation,
  account: string,
  reference: unknown,
): { kind: string; name: string; uid: string } | undefined {
  if (!isRecord(reference)) return undefined;
  const [apiVersion, kind, name, uid] = ['apiVersion', 'kind', 'name', 'uid'].map((key) =>
    shown(reference[key]),
  ) as [string, string, string, string];
  const resource = BINDABLE[`${apiVersion}/${kind}`];
  if (!resource) throw badRequest(`cannot bind token to object of type ${apiVersion}, Kind=${kind}`);
  const object = env.facilities.read(resource, resource.namespaced ? op.namespace : undefined, name);
  if (!object)
    throw failure(404, 'NotFound', `${resource.plural} "${name}" not found`, { name, kind: resource.plural });
  if (uid && uid !== object.metadata.uid) {
    throw conflict(
      resource,
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  if (kind === 'Pod' && as<Pod>(object).spec?.serviceAccountName !== account) {
    throw badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    );
  }
  return { kind, name, uid: object.metadata.uid ?? '' };
}
