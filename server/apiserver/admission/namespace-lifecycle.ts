import { failure, forbidden, type Namespace, notFound, type StatusError } from '#server/kube';
import { as } from '../kind.ts';
import type { AdmissionAttributes } from './chain.ts';

const NAMESPACES = { group: '', plural: 'namespaces' };
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

/**
 * Nothing is created in a namespace that is not there or is going away, and three namespaces are never deleted.
 * Access reviews pass: they may be asked about namespaces that do not exist.
 * Models k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle.
 */
export function admitNamespaceLifecycle(attributes: AdmissionAttributes): void {
  const { operation, kind, namespace, name, server } = attributes;
  if (kind.group === '' && kind.plural === 'namespaces') {
    if (operation === 'DELETE' && IMMORTAL.has(name)) {
      throw forbidden(NAMESPACES, name, 'this namespace may not be deleted');
    }
    return;
  }
  if (!kind.namespaced || !namespace || operation !== 'CREATE') return;
  if (kind.group === 'authorization.k8s.io' && kind.plural === 'localsubjectaccessreviews') return;
  const found = server.read(NAMESPACES, undefined, namespace);
  if (!found) throw notFound(NAMESPACES, namespace);
  if (as<Namespace>(found).status?.phase !== 'Terminating') return;
  throw terminating(attributes, namespace);
}

function terminating(attributes: AdmissionAttributes, namespace: string): StatusError {
  const { kind, name } = attributes;
  const text = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const refusal = forbidden(kind, name || attributes.object?.metadata.generateName || '', text);
  const { code, reason = 'Forbidden', message = text, details } = refusal.status;
  return failure(code, reason, message, {
    ...details,
    causes: [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  });
}
