import { describe, expect, it } from 'vitest';
import type { UnstructuredObject, UserInfo } from '#server/kube';
import type { AuthorizationAttributes } from '../kind.ts';
import { createStoredObjects } from '../testing/stored-objects.ts';
import { createAuthorizer } from './authorizer.ts';

const kubelet: UserInfo = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

function pod(name: string, nodeName: string, suffix: string): UnstructuredObject {
  const spec = {
    nodeName,
    serviceAccountName: `sa-${suffix}`,
    imagePullSecrets: [{ name: `pull-${suffix}` }],
    containers: [
      { name: 'c', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: `env-${suffix}`, key: 'k' } } }] },
    ],
    initContainers: [{ name: 'i', envFrom: [{ configMapRef: { name: `from-${suffix}` } }] }],
    volumes: [
      { name: 'a', secret: { secretName: `vol-${suffix}` } },
      { name: 'b', configMap: { name: `map-${suffix}` } },
      { name: 'c', projected: { sources: [{ configMap: { name: `projected-${suffix}` } }] } },
      { name: 'd', persistentVolumeClaim: { claimName: `claim-${suffix}` } },
    ],
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'x' }, spec };
}

describe('the Node authorizer', () => {
  const stored = createStoredObjects();
  stored.put('pods', pod('mine', 'n1', 'mine'));
  stored.put('pods', pod('other', 'n2', 'other'));
  stored.put('persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv' },
    spec: { claimRef: { namespace: 'x', name: 'claim-mine' } },
  });
  const authorizer = createAuthorizer(stored);
  const decide = (
    verb: string,
    plural: string,
    more: Partial<NonNullable<AuthorizationAttributes['resource']>> = {},
    rest: Partial<AuthorizationAttributes> = {},
  ): string => {
    const { allowed, reason } = authorizer.authorize({
      user: kubelet,
      verb,
      resource: { group: '', plural, ...more },
      ...rest,
    });
    return allowed ? 'yes' : reason || 'no';
  };
  const unrelated = "no relationship found between node 'n1' and this object";
  const x = { namespace: 'x' };

  it.each([
    ['get', 'secrets', 'pull-mine', 'yes'],
    ['get', 'secrets', 'env-mine', 'yes'],
    ['watch', 'secrets', 'vol-mine', 'yes'],
    ['get', 'secrets', 'vol-other', unrelated],
    ['list', 'secrets', '', 'No Object name found'],
    ['delete', 'secrets', 'vol-mine', 'can only read resources of this type'],
    ['get', 'configmaps', 'from-mine', 'yes'],
    ['get', 'configmaps', 'map-mine', 'yes'],
    ['get', 'configmaps', 'projected-mine', 'yes'],
    ['get', 'configmaps', 'map-other', unrelated],
    ['get', 'persistentvolumeclaims', 'claim-mine', 'yes'],
    ['get', 'persistentvolumeclaims', 'claim-other', unrelated],
    ['list', 'persistentvolumeclaims', '', 'can only get individual resources of this type'],
    ['get', 'pods', 'mine', 'yes'],
    ['get', 'pods', 'other', unrelated],
  ])('%s %s %s: %s', (verb, plural, name, expected) => {
    expect(decide(verb, plural, { ...x, ...(name ? { name } : {}) })).toBe(expected);
  });

  it('gives tokens only for the service accounts of its pods', () => {
    expect(decide('create', 'serviceaccounts', { ...x, name: 'sa-mine', subresource: 'token' })).toBe('yes');
    expect(decide('create', 'serviceaccounts', { ...x, name: 'sa-other', subresource: 'token' })).toBe(
      unrelated,
    );
    expect(decide('create', 'serviceaccounts', { ...x, name: 'sa-mine' })).toBe(
      'can only create token subresource of serviceaccount',
    );
  });

  it('shows its own Node, Lease and CSINode', () => {
    const lease = { group: 'coordination.k8s.io', namespace: 'kube-node-lease' };
    expect(decide('get', 'nodes', { name: 'n1' })).toBe('yes');
    expect(decide('get', 'nodes', { name: 'n2' })).toBe(
      "node 'n1' cannot read 'n2', only its own Node object",
    );
    expect(decide('list', 'nodes')).toBe("node 'n1' cannot read all nodes, only its own Node object");
    expect(decide('patch', 'nodes', { name: 'n1', subresource: 'status' })).toBe('yes');
    expect(decide('delete', 'nodes', { name: 'n1' })).toBe('no');
    expect(decide('update', 'leases', { ...lease, name: 'n1' })).toBe('yes');
    expect(decide('update', 'leases', { ...lease, name: 'n2' })).toBe(
      'can only access node lease with the same name as the requesting node',
    );
    expect(decide('get', 'csinodes', { group: 'storage.k8s.io', name: 'n2' })).toBe(
      'can only access CSINode with the same name as the requesting node',
    );
  });

  it('lists pods of its own node only', () => {
    const selected = (value: string): Partial<AuthorizationAttributes> => ({
      fieldRequirements: [{ field: 'spec.nodeName', operator: '=', value }],
    });
    expect(decide('watch', 'pods', {}, selected('n1'))).toBe('yes');
    expect(decide('watch', 'pods', {}, selected('n2'))).toBe(
      'can only list/watch pods with spec.nodeName field selector',
    );
    expect(decide('list', 'pods', {}, { fieldRequirements: [] })).toBe(
      'can only list/watch pods with spec.nodeName field selector',
    );
  });

  it('follows a volume to its claim', () => {
    expect(decide('get', 'persistentvolumes', { name: 'pv' })).toBe('yes');
    expect(decide('get', 'persistentvolumes', { name: 'none' })).toBe(unrelated);
  });

  it('falls back to the rules of every kubelet', () => {
    expect(decide('list', 'services')).toBe('yes');
    expect(decide('create', 'certificatesigningrequests', { group: 'certificates.k8s.io' })).toBe('yes');
    expect(decide('list', 'deployments', { group: 'apps' })).toBe('no');
  });

  it('knows no node without the group, and none without a name', () => {
    const pretender = { user: { name: 'system:node:n1', groups: [] } };
    expect(decide('get', 'nodes', { name: 'n1' }, pretender)).toBe('no');
    const nameless = { user: { name: 'system:node:', groups: ['system:nodes'] } };
    expect(decide('list', 'services', {}, nameless)).toBe('unknown node for user "system:node:"');
  });
});
