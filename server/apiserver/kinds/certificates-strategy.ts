import {
  type CertificateSigningRequest,
  type CertificateSigningRequestCondition,
  deepEqual,
  type FieldError,
  formatTime,
  invalid,
  type UserInfo,
} from '#server/kube';
import { as, type RequestContext, type Strategy } from '../kind.ts';
import { invalidValue, required } from './field-errors.ts';

type Csr = CertificateSigningRequest;
type Condition = CertificateSigningRequestCondition;

const KIND = { group: 'certificates.k8s.io', kind: 'CertificateSigningRequest' };
const SHORTEST_SECONDS = 600;
const SIGNER = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\/[a-zA-Z0-9.:\-_/]+$/;
const DECISIONS: readonly string[] = ['Approved', 'Denied'];

function isPemRequest(base64: string | undefined): boolean {
  const text = Buffer.from(base64 ?? '', 'base64').toString('latin1');
  return /-----BEGIN CERTIFICATE REQUEST-----[\s\S]+-----END CERTIFICATE REQUEST-----/.test(text);
}

/** Models ValidateCertificateSigningRequestCreate of kubernetes/pkg/apis/certificates/validation. */
function csrErrors({ spec }: Csr): FieldError[] {
  const errors: FieldError[] = [];
  if (!isPemRequest(spec.request)) {
    errors.push(
      invalidValue('spec.request', spec.request ?? '', 'PEM block type must be CERTIFICATE REQUEST'),
    );
  }
  if (!spec.usages?.length) errors.push(required('spec.usages'));
  if (!spec.signerName) errors.push(required('spec.signerName'));
  else if (!SIGNER.test(spec.signerName)) {
    const why = 'must be a fully qualified domain and path of the form "example.com/signer-name"';
    errors.push(invalidValue('spec.signerName', spec.signerName, why));
  }
  if (spec.expirationSeconds !== undefined && spec.expirationSeconds < SHORTEST_SECONDS) {
    errors.push(
      invalidValue(
        'spec.expirationSeconds',
        spec.expirationSeconds,
        'may not specify a duration less than 600 seconds (10 minutes)',
      ),
    );
  }
  return errors;
}

function conditionErrors(conditions: readonly Condition[]): FieldError[] {
  const types = new Set(conditions.map((condition) => condition.type));
  const errors: FieldError[] = [];
  for (const [index, condition] of conditions.entries()) {
    const at = `status.conditions[${index}]`;
    if (!condition.type) errors.push(required(`${at}.type`));
    if (!condition.status) errors.push(required(`${at}.status`));
    else if (DECISIONS.includes(condition.type) && condition.status !== 'True') {
      const why = `must be True for ${condition.type} conditions`;
      errors.push({
        type: 'FieldValueNotSupported',
        field: `${at}.status`,
        value: condition.status,
        detail: why,
      });
    }
  }
  if (types.has('Approved') && types.has('Denied')) {
    errors.push(
      invalidValue('status.conditions', 'Denied', 'Approved and Denied conditions are mutually exclusive'),
    );
  }
  return errors;
}

/** The spec says who asked; nobody says so himself. */
function recordRequester(csr: Csr, user: UserInfo): void {
  const { spec } = csr;
  spec.username = user.name;
  if (user.uid) spec.uid = user.uid;
  else delete spec.uid;
  if (user.groups.length > 0) spec.groups = [...user.groups];
  else delete spec.groups;
  delete spec.extra;
  const extra = Object.entries(user.extra ?? {});
  if (extra.length > 0) spec.extra = Object.fromEntries(extra.map(([key, values]) => [key, [...values]]));
}

function stampConditions(csr: Csr, old: Csr, now: number): void {
  for (const condition of csr.status?.conditions ?? []) {
    const before = old.status?.conditions?.find((one) => one.type === condition.type);
    if (!condition.lastUpdateTime) condition.lastUpdateTime = formatTime(now);
    if (condition.lastTransitionTime) continue;
    const same = before?.status === condition.status ? before.lastTransitionTime : undefined;
    condition.lastTransitionTime = same ?? formatTime(now);
  }
}

/** `/approval` writes decisions and nothing else; `/status` everything but decisions. */
function prepareForUpdate(csr: Csr, old: Csr, context: RequestContext): void {
  csr.spec = old.spec;
  if (context.subresource !== 'approval' && context.subresource !== 'status') return;
  csr.status ??= {};
  const decides = (condition: Condition): boolean => DECISIONS.includes(condition.type);
  const sent = csr.status.conditions ?? [];
  const known = old.status?.conditions ?? [];
  if (context.subresource === 'status') {
    csr.status.conditions = [...known.filter(decides), ...sent.filter((condition) => !decides(condition))];
  } else {
    if (old.status?.certificate) csr.status.certificate = old.status.certificate;
    else delete csr.status.certificate;
    csr.status.conditions = [...sent.filter(decides), ...known.filter((condition) => !decides(condition))];
    const removed = known.find(
      (condition) => decides(condition) && !sent.some((one) => one.type === condition.type),
    );
    if (removed) {
      const why = `updates may not remove a condition of type "${removed.type}"`;
      throw invalid(KIND, csr.metadata.name, [
        { type: 'FieldValueForbidden', field: 'status.conditions', detail: why },
      ]);
    }
  }
  if (csr.status.conditions.length === 0) delete csr.status.conditions;
  stampConditions(csr, old, context.server.now());
  const errors = conditionErrors(csr.status.conditions ?? []);
  const issued = old.status?.certificate;
  if (issued && csr.status.certificate !== issued) {
    errors.push({
      type: 'FieldValueForbidden',
      field: 'status.certificate',
      detail: 'updates may not clear or modify existing certificate content',
    });
  }
  if (errors.length > 0) throw invalid(KIND, csr.metadata.name, errors);
}

/** Models kubernetes/pkg/registry/certificates/certificates. */
export const csrStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  prepareForCreate(object, context) {
    const csr = as<Csr>(object);
    recordRequester(csr, context.user);
    csr.status = {};
  },
  prepareForUpdate(object, old, context) {
    prepareForUpdate(as<Csr>(object), structuredClone(as<Csr>(old)), context);
  },
  validate: (object) => csrErrors(as<Csr>(object)),
  validateUpdate: (object, old) =>
    deepEqual(as<Csr>(object).spec, as<Csr>(old).spec) ? [] : csrErrors(as<Csr>(object)),
};
