import { describe, expect, it } from 'vitest';
import type { UnstructuredObject, UserInfo } from '#server/kube';
import { attributesOf, facilities, objectOf, podOf, refusalOf } from '../kinds/testing/context.ts';
import { type AdmissionAttributes, createAdmission } from './chain.ts';

const admission = createAdmission();
const NAMESPACE = objectOf('v1', 'Namespace', { name: 'default', status: { phase: 'Active' } });
const ACCOUNT = objectOf('v1', 'ServiceAccount', { name: 'default', namespace: 'default' });
const SYSTEM = objectOf('v1', 'Namespace', { name: 'kube-system', status: { phase: 'Active' } });
const LEASES = objectOf('v1', 'Namespace', { name: 'kube-node-lease', status: { phase: 'Active' } });

type Options = Parameters<typeof facilities>[1];

async function admitted(
  operation: AdmissionAttributes['operation'],
  object: UnstructuredObject,
  stored: UnstructuredObject[] = [NAMESPACE, ACCOUNT],
  options: Partial<AdmissionAttributes> = {},
  server?: Options,
): Promise<UnstructuredObject> {
  const copy = structuredClone(object);
  await admission.admit(attributesOf(operation, copy, facilities(stored, server), options));
  return copy;
}

describe('NamespaceLifecycle', () => {
  it('creates nothing where there is no namespace', async () => {
    const map = objectOf('v1', 'ConfigMap', { namespace: 'nowhere' });
    await expect(admitted('CREATE', map)).rejects.toMatchObject({
      code: 404,
      message: 'namespaces "nowhere" not found',
    });
  });

  it('creates nothing in a namespace that goes away, and says so for machines too', async () => {
    const going = objectOf('v1', 'Namespace', { name: 'default', status: { phase: 'Terminating' } });
    await expect(
      admitted('CREATE', objectOf('v1', 'ConfigMap', { namespace: 'default' }), [going]),
    ).rejects.toMatchObject({
      status: {
        code: 403,
        reason: 'Forbidden',
        message:
          'configmaps "a" is forbidden: unable to create new content in namespace default because it is being terminated',
        details: {
          name: 'a',
          kind: 'configmaps',
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: 'namespace default is being terminated',
              field: 'metadata.namespace',
            },
          ],
        },
      },
    });
  });

  it.each(['default', 'kube-system', 'kube-public'])('never deletes %s', async (name) => {
    expect(await refusalOf(() => admitted('DELETE', objectOf('v1', 'Namespace', { name })))).toBe(
      `namespaces "${name}" is forbidden: this namespace may not be deleted`,
    );
  });

  it('deletes others, and updates what is in one that goes away', async () => {
    await admitted('DELETE', objectOf('v1', 'Namespace', { name: 'mine' }));
    await admitted('UPDATE', objectOf('v1', 'ConfigMap', { namespace: 'gone' }));
  });
});

describe('ServiceAccount', () => {
  it('must exist', async () => {
    expect(await refusalOf(() => admitted('CREATE', podOf(), [NAMESPACE]))).toBe(
      'pods "a" is forbidden: error looking up service account default/default: serviceaccount "default" not found',
    );
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['pod', { automountServiceAccountToken: false }, {}],
    ['account', {}, { automountServiceAccountToken: false }],
  ])('mounts no token when the %s says so', async (_, spec, account) => {
    const pod = await admitted('CREATE', podOf(spec), [NAMESPACE, { ...ACCOUNT, ...account }]);
    expect(pod.spec).not.toHaveProperty('volumes');
  });

  it("lends the account's pull secrets to pods without their own", async () => {
    const account = { ...ACCOUNT, imagePullSecrets: [{ name: 'registry' }] };
    expect((await admitted('CREATE', podOf(), [NAMESPACE, account])).spec).toMatchObject({
      imagePullSecrets: [{ name: 'registry' }],
    });
    const own = await admitted('CREATE', podOf({ imagePullSecrets: [{ name: 'own' }] }), [
      NAMESPACE,
      account,
    ]);
    expect(own.spec).toMatchObject({ imagePullSecrets: [{ name: 'own' }] });
  });

  it('leaves mirror pods alone', async () => {
    const pod = podOf({}, { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } });
    expect((await admitted('CREATE', pod, [NAMESPACE])).spec).not.toHaveProperty('serviceAccountName');
  });
});

describe('Priority', () => {
  const gold = objectOf('scheduling.k8s.io/v1', 'PriorityClass', {
    name: 'gold',
    value: 7,
    preemptionPolicy: 'Never',
  });
  const base = [NAMESPACE, ACCOUNT, { ...gold, globalDefault: true }];

  it.each<[string, Record<string, unknown>, UnstructuredObject[], Record<string, unknown>]>([
    ['no class', {}, [NAMESPACE, ACCOUNT], { priority: 0, preemptionPolicy: 'PreemptLowerPriority' }],
    ['the default class', {}, base, { priority: 7, preemptionPolicy: 'Never', priorityClassName: 'gold' }],
    [
      'a system class',
      { priorityClassName: 'system-node-critical' },
      base,
      { priority: 2000001000, preemptionPolicy: 'PreemptLowerPriority' },
    ],
  ])('of %s', async (_, spec, stored, expected) => {
    expect((await admitted('CREATE', podOf(spec), stored)).spec).toMatchObject(expected);
  });

  it('refuses classes that are not there, and numbers of one’s own', async () => {
    expect(await refusalOf(() => admitted('CREATE', podOf({ priorityClassName: 'x' })))).toBe(
      'pods "a" is forbidden: no PriorityClass with name x was found',
    );
    expect(await refusalOf(() => admitted('CREATE', podOf({ priority: 9 })))).toBe(
      'pods "a" is forbidden: the integer value of priority (9) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
    );
  });

  it('knows one default', async () => {
    const second = objectOf('scheduling.k8s.io/v1', 'PriorityClass', { name: 'lead', globalDefault: true });
    expect(await refusalOf(() => admitted('CREATE', second, base))).toBe(
      'priorityclasses.scheduling.k8s.io "lead" is forbidden: PriorityClass gold is already marked as default. Only one default can exist',
    );
  });
});

describe('tolerations and taints', () => {
  it('keeps what a pod tolerates, and adds what it does not', async () => {
    const own = {
      key: 'node.kubernetes.io/not-ready',
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 5,
    };
    expect((await admitted('CREATE', podOf({ tolerations: [own] }))).spec).toMatchObject({
      tolerations: [
        own,
        {
          key: 'node.kubernetes.io/unreachable',
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 300,
        },
      ],
    });
    const all = [{ operator: 'Exists' }];
    expect((await admitted('CREATE', podOf({ tolerations: all }))).spec).toMatchObject({ tolerations: all });
  });

  it('a new node is not ready, behind the taints it brought', async () => {
    const node = await admitted(
      'CREATE',
      objectOf('v1', 'Node', { spec: { taints: [{ key: 'x', effect: 'NoExecute' }] } }),
    );
    expect(node.spec).toEqual({
      taints: [
        { key: 'x', effect: 'NoExecute' },
        { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
      ],
    });
  });
});

describe('NodeRestriction', () => {
  const user: UserInfo = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
  const node = objectOf('v1', 'Node', { name: 'n1', metadata: { uid: 'u1' } });
  const mirror = (
    parts: Record<string, unknown> = {},
    spec: Record<string, unknown> = {},
  ): UnstructuredObject =>
    podOf(
      { nodeName: 'n1', ...spec },
      {
        namespace: 'kube-system',
        metadata: {
          annotations: { 'kubernetes.io/config.mirror': 'x' },
          ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1', controller: true }],
          ...parts,
        },
      },
    );
  const stored = [NAMESPACE, SYSTEM, LEASES, node];
  const lease = (namespace: string, name: string): UnstructuredObject =>
    objectOf('coordination.k8s.io/v1', 'Lease', { name, namespace });

  it.each<[string, AdmissionAttributes['operation'], UnstructuredObject, Partial<AdmissionAttributes>]>([
    ['its mirror pods', 'CREATE', mirror(), {}],
    [
      'its own node',
      'CREATE',
      objectOf('v1', 'Node', {
        name: 'n1',
        metadata: { labels: { 'kubernetes.io/hostname': 'n1', mine: 'x' } },
      }),
      {},
    ],
    ['its lease', 'CREATE', lease('kube-node-lease', 'n1'), {}],
    ['pods on it, to delete', 'DELETE', podOf({ nodeName: 'n1' }), {}],
    [
      'their status',
      'UPDATE',
      podOf({ nodeName: 'n1' }),
      { subresource: 'status', old: podOf({ nodeName: 'n1' }) },
    ],
  ])('lets a kubelet have %s', async (_, operation, object, options) => {
    await expect(admitted(operation, object, stored, { user, ...options })).resolves.toBeDefined();
  });

  it.each<[string, AdmissionAttributes['operation'], UnstructuredObject, Partial<AdmissionAttributes>]>([
    [
      'pods "a" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
      'CREATE',
      mirror({ annotations: {} }, { serviceAccountName: 'default' }),
      {},
    ],
    [
      'pods "a" is forbidden: node "n1" can only create pods with an owner reference set to itself',
      'CREATE',
      mirror({ ownerReferences: [] }),
      {},
    ],
    [
      'pods "a" is forbidden: node "n1" can not create pods that reference secrets',
      'CREATE',
      mirror({}, { imagePullSecrets: [{ name: 's' }] }),
      {},
    ],
    [
      'pods "a" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
      'DELETE',
      podOf({ nodeName: 'n2' }),
      {},
    ],
    [
      'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
      'UPDATE',
      objectOf('v1', 'Node', { name: 'n2' }),
      {},
    ],
    [
      'nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
      'UPDATE',
      node,
      { old: objectOf('v1', 'Node', { name: 'n1', spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }) },
    ],
    [
      'nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: node-role.kubernetes.io/control-plane',
      'CREATE',
      objectOf('v1', 'Node', {
        name: 'n1',
        metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } },
      }),
      {},
    ],
    [
      'leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the requesting node',
      'CREATE',
      lease('kube-node-lease', 'n2'),
      {},
    ],
    [
      'leases.coordination.k8s.io "n1" is forbidden: can only access leases in the "kube-node-lease" system namespace',
      'CREATE',
      lease('default', 'n1'),
      {},
    ],
    [
      'pods "a" is forbidden: unexpected pod subresource "binding", only \'status\' and \'eviction\' are allowed',
      'CREATE',
      podOf(),
      { subresource: 'binding' },
    ],
  ])('%s', async (message, operation, object, options) => {
    const account = objectOf('v1', 'ServiceAccount', { name: 'default', namespace: 'kube-system' });
    const work = (): unknown =>
      admitted(operation, object, [...stored, account, ACCOUNT], { user, ...options });
    expect(await refusalOf(work)).toBe(message);
  });
});

describe('certificates', () => {
  const csr = objectOf('certificates.k8s.io/v1', 'CertificateSigningRequest', {
    spec: { signerName: 'example.com/signer' },
  });
  const approval = { subresource: 'approval', old: csr };

  it('are approved by those who may for that signer', async () => {
    expect(await refusalOf(() => admitted('UPDATE', csr, [], approval))).toBe(
      'certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to approve requests with signerName "example.com/signer"',
    );
    const allow = (verb: string, name?: string): boolean => verb === 'approve' && name === 'example.com/*';
    await admitted('UPDATE', csr, [], approval, { allow });
  });
});
