import { forbidden, type StatusError } from '#server/kube';
import type { AdmissionAttributes } from './chain.ts';

/**
 * 403 about the object of the request; a create without a name is named by its `generateName`.
 * Models admission.NewForbidden of k8s.io/apiserver.
 */
export function refuse(attributes: AdmissionAttributes, why: string): StatusError {
  const metadata = attributes.object?.metadata;
  const name = attributes.name || metadata?.name || metadata?.generateName || 'Unknown';
  return forbidden(attributes.kind, name, why);
}

/** Is the request about this resource of the core group (and this subresource)? */
export function concerns(attributes: AdmissionAttributes, plural: string, subresource = ''): boolean {
  const { kind } = attributes;
  return kind.group === '' && kind.plural === plural && (attributes.subresource ?? '') === subresource;
}
