import {
  badRequest,
  type FieldError,
  invalid,
  type NonResourceAttributes,
  parseFieldSelector,
  type ResourceAttributes,
  StatusError,
  type SubjectAccessReviewSpec,
  type UnstructuredObject,
  type UserInfo,
} from '#server/kube';
import type { AuthorizationAttributes, KindDefinition, RequestContext } from '../kind.ts';

type Answer = NonNullable<KindDefinition['virtual']>;

const AUTHORIZATION = 'authorization.k8s.io';
const AUTHENTICATION = 'authentication.k8s.io';

/**
 * Reviews: kinds that are answered, never stored (`kubectl auth can-i`, `auth can-i --list`, `auth whoami`; token
 * reviews of components). Models kubernetes/pkg/registry/authorization and kubernetes/pkg/registry/authentication.
 */
export const reviewKinds: readonly KindDefinition[] = [
  review(AUTHORIZATION, 'SubjectAccessReview', subjectAccessReview),
  review(AUTHORIZATION, 'SelfSubjectAccessReview', selfSubjectAccessReview),
  review(AUTHORIZATION, 'LocalSubjectAccessReview', localSubjectAccessReview, true),
  review(AUTHORIZATION, 'SelfSubjectRulesReview', selfSubjectRulesReview),
  review(AUTHENTICATION, 'TokenReview', tokenReview),
  review(AUTHENTICATION, 'SelfSubjectReview', selfSubjectReview),
];

function review(group: string, kind: string, virtual: Answer, namespaced = false): KindDefinition {
  return {
    group,
    version: 'v1',
    kind,
    listKind: `${kind}List`,
    plural: `${kind.toLowerCase()}s`,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced,
    schemaType: `${group.split('.')[0]}/v1#${kind}`,
    verbs: ['create'],
    hasStatus: false,
    strategy: {},
    columns: [],
    virtual,
  };
}

function specOf<T>(object: UnstructuredObject): Partial<T> {
  return object.spec ?? {};
}

/** What was asked, with the answer; objects without a name show none. */
function answer(object: UnstructuredObject, status: object): UnstructuredObject {
  const metadata: Partial<UnstructuredObject['metadata']> = { ...object.metadata };
  if (!metadata.name) delete metadata.name;
  return { ...object, metadata: metadata as UnstructuredObject['metadata'], status };
}

async function subjectAccessReview(
  context: RequestContext,
  object: UnstructuredObject,
): Promise<UnstructuredObject> {
  const spec = specOf<SubjectAccessReviewSpec>(object);
  refuseWhenInvalid('SubjectAccessReview', [
    ...attributeErrors(spec),
    ...subjectErrors(spec),
    ...metadataErrors(object),
  ]);
  return answer(object, decide(context, subjectOf(spec), spec));
}

async function localSubjectAccessReview(
  context: RequestContext,
  object: UnstructuredObject,
): Promise<UnstructuredObject> {
  const spec = specOf<SubjectAccessReviewSpec>(object);
  const errors = [...attributeErrors(spec), ...subjectErrors(spec)];
  const asked = spec.resourceAttributes;
  if (asked && asked.namespace !== context.namespace) {
    const field = 'spec.resourceAttributes.namespace';
    errors.push({
      type: 'FieldValueInvalid',
      field,
      value: asked.namespace ?? '',
      detail: 'must match metadata.namespace',
    });
  }
  if (spec.nonResourceAttributes) {
    const field = 'spec.nonResourceAttributes';
    errors.push({
      type: 'FieldValueInvalid',
      field,
      value: spec.nonResourceAttributes,
      detail: 'disallowed on this kind of request',
    });
  }
  refuseWhenInvalid('LocalSubjectAccessReview', errors);
  return answer(object, decide(context, subjectOf(spec), spec));
}

async function selfSubjectAccessReview(
  context: RequestContext,
  object: UnstructuredObject,
): Promise<UnstructuredObject> {
  const spec = specOf<SubjectAccessReviewSpec>(object);
  refuseWhenInvalid('SelfSubjectAccessReview', [...attributeErrors(spec), ...metadataErrors(object)]);
  return answer(object, decide(context, context.user, spec));
}

async function selfSubjectRulesReview(
  context: RequestContext,
  object: UnstructuredObject,
): Promise<UnstructuredObject> {
  const { namespace } = specOf<{ namespace: string }>(object);
  if (!namespace) throw badRequest('no namespace on request');
  return answer(object, context.server.rulesFor(context.user, namespace));
}

async function selfSubjectReview(
  context: RequestContext,
  object: UnstructuredObject,
): Promise<UnstructuredObject> {
  return answer(object, { userInfo: userInfo(context.user) });
}

async function tokenReview(context: RequestContext, object: UnstructuredObject): Promise<UnstructuredObject> {
  const { token, audiences } = specOf<{ token: string; audiences: string[] }>(object);
  if (!token) throw badRequest('token is required for TokenReview in authentication');
  const { tokens } = context.server;
  const wanted = audiences?.length ? audiences : (tokens.defaultAudiences ?? []);
  const user = await tokens.review(token, wanted);
  if (!user) return answer(object, { user: {}, error: 'invalid bearer token' });
  const fitting: string[] = [];
  for (const audience of wanted) if (await tokens.review(token, [audience])) fitting.push(audience);
  return answer(object, { authenticated: true, user: userInfo(user), audiences: fitting });
}

function userInfo(user: UserInfo): object {
  return {
    username: user.name,
    ...(user.uid ? { uid: user.uid } : {}),
    ...(user.groups.length ? { groups: user.groups } : {}),
    ...(user.extra && Object.keys(user.extra).length ? { extra: user.extra } : {}),
  };
}

function subjectOf(spec: Partial<SubjectAccessReviewSpec>): UserInfo {
  return {
    name: spec.user ?? '',
    groups: spec.groups ?? [],
    ...(spec.uid ? { uid: spec.uid } : {}),
    ...(spec.extra ? { extra: spec.extra } : {}),
  };
}

function decide(context: RequestContext, user: UserInfo, spec: Partial<SubjectAccessReviewSpec>): object {
  const { attributes, error } = attributesOf(user, spec.resourceAttributes, spec.nonResourceAttributes);
  const { allowed, reason } = context.server.authorize(attributes);
  return { allowed, ...(reason ? { reason } : {}), ...(error ? { evaluationError: error } : {}) };
}

function attributesOf(
  user: UserInfo,
  asked: ResourceAttributes | undefined,
  path: NonResourceAttributes | undefined,
): { attributes: AuthorizationAttributes; error?: string } {
  if (!asked) return { attributes: { user, verb: path?.verb ?? '', path: path?.path ?? '' } };
  const { requirements, error } = requirementsOf(asked);
  const resource = {
    group: asked.group ?? '',
    version: asked.version || '*',
    plural: asked.resource ?? '',
    ...(asked.subresource ? { subresource: asked.subresource } : {}),
    ...(asked.namespace ? { namespace: asked.namespace } : {}),
    ...(asked.name ? { name: asked.name } : {}),
  };
  const attributes = { user, verb: asked.verb ?? '', resource, fieldRequirements: requirements };
  return error ? { attributes, error } : { attributes };
}

function requirementsOf({ fieldSelector }: ResourceAttributes): {
  requirements: NonNullable<AuthorizationAttributes['fieldRequirements']>;
  error?: string;
} {
  try {
    const raw = fieldSelector?.rawSelector ? parseFieldSelector(fieldSelector.rawSelector) : [];
    const listed = (fieldSelector?.requirements ?? []).flatMap(({ key, operator, values }) => {
      const [value, ...more] = values ?? [];
      if (value === undefined || more.length > 0) return [];
      return operator === 'In'
        ? { field: key, operator: '=', value }
        : operator === 'NotIn'
          ? { field: key, operator: '!=', value }
          : [];
    });
    return { requirements: [...raw, ...listed] };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { requirements: [], error: 'spec.resourceAttributes.fieldSelector ignored due to parse error' };
  }
}

function refuseWhenInvalid(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid({ group: AUTHORIZATION, kind }, '', errors);
}

function attributeErrors({
  resourceAttributes,
  nonResourceAttributes,
}: Partial<SubjectAccessReviewSpec>): FieldError[] {
  if (resourceAttributes && nonResourceAttributes) {
    const detail = 'cannot be specified in combination with resourceAttributes';
    return [
      {
        type: 'FieldValueInvalid',
        field: 'spec.nonResourceAttributes',
        value: nonResourceAttributes,
        detail,
      },
    ];
  }
  if (resourceAttributes || nonResourceAttributes) return [];
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [{ type: 'FieldValueInvalid', field: 'spec.resourceAttributes', value: null, detail }];
}

function subjectErrors({ user, groups }: Partial<SubjectAccessReviewSpec>): FieldError[] {
  if (user || groups?.length) return [];
  return [
    {
      type: 'FieldValueInvalid',
      field: 'spec.user',
      value: '',
      detail: 'at least one of user or group must be specified',
    },
  ];
}

function metadataErrors({ metadata }: UnstructuredObject): FieldError[] {
  if (!metadata?.name && !metadata?.generateName && !metadata?.labels && !metadata?.annotations) return [];
  return [{ type: 'FieldValueInvalid', field: 'metadata', value: metadata, detail: 'must be empty' }];
}
