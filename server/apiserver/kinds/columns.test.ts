import { describe, expect, it } from 'vitest';
import type { UnstructuredObject } from '#server/kube';
import { humanDuration } from './cells.ts';
import { builtinKinds } from './table.ts';
import { kindOf, NOW, objectOf } from './testing/context.ts';

const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString().replace('.000Z', 'Z');
const AGE = { creationTimestamp: ago(300) };

/** Header and cell of every column, as the client shows them: `wide` with those of `-o wide`. */
function row(object: UnstructuredObject, wide = false): Record<string, unknown> {
  const columns = kindOf(object).columns.filter((column) => wide || column.priority === 0);
  return Object.fromEntries(columns.map((column) => [column.name.toUpperCase(), column.cell(object, NOW)]));
}

const pod = (
  status: Record<string, unknown>,
  parts: { spec?: object; metadata?: object } = {},
): UnstructuredObject =>
  objectOf('v1', 'Pod', {
    metadata: { ...AGE, ...parts.metadata },
    spec: { containers: [{ name: 'c' }], ...parts.spec },
    status,
  });
const running = { name: 'c', ready: true, restartCount: 0, state: { running: {} } };
const waiting = (reason: string, restartCount = 0): object => ({
  name: 'c',
  ready: false,
  restartCount,
  state: { waiting: { reason } },
});
const ended = (exitCode: number, reason?: string): object => ({
  name: 'c',
  ready: false,
  restartCount: 0,
  state: { terminated: { exitCode, ...(reason ? { reason } : {}) } },
});

describe('pods', () => {
  it.each<[string, UnstructuredObject, string, string]>([
    ['pending', pod({ phase: 'Pending' }), '0/1', 'Pending'],
    [
      'being made',
      pod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] }),
      '0/1',
      'ContainerCreating',
    ],
    ['running', pod({ phase: 'Running', containerStatuses: [running] }), '1/1', 'Running'],
    [
      'crashing',
      pod({ phase: 'Running', containerStatuses: [waiting('CrashLoopBackOff')] }),
      '0/1',
      'CrashLoopBackOff',
    ],
    ['done', pod({ phase: 'Succeeded', containerStatuses: [ended(0, 'Completed')] }), '0/1', 'Completed'],
    ['failed', pod({ phase: 'Failed', containerStatuses: [ended(1, 'Error')] }), '0/1', 'Error'],
    ['failed without a reason', pod({ phase: 'Failed', containerStatuses: [ended(3)] }), '0/1', 'ExitCode:3'],
    ['evicted', pod({ phase: 'Failed', reason: 'Evicted' }), '0/1', 'Evicted'],
    [
      'going away',
      pod({ phase: 'Running', containerStatuses: [running] }, { metadata: { deletionTimestamp: ago(1) } }),
      '1/1',
      'Terminating',
    ],
    [
      'lost',
      pod({ phase: 'Running', reason: 'NodeLost' }, { metadata: { deletionTimestamp: ago(1) } }),
      '0/1',
      'Unknown',
    ],
    [
      'gated',
      pod({
        phase: 'Pending',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
      }),
      '0/1',
      'SchedulingGated',
    ],
    [
      'initializing',
      pod(
        { phase: 'Pending', initContainerStatuses: [{ name: 'i', restartCount: 0, state: { running: {} } }] },
        { spec: { initContainers: [{ name: 'i' }, { name: 'j' }] } },
      ),
      '0/1',
      'Init:0/2',
    ],
    [
      'failing to initialize',
      pod(
        {
          phase: 'Pending',
          initContainerStatuses: [{ name: 'i', restartCount: 0, state: { terminated: { exitCode: 2 } } }],
        },
        { spec: { initContainers: [{ name: 'i' }] } },
      ),
      '0/1',
      'Init:ExitCode:2',
    ],
    [
      'with a sidecar',
      pod(
        {
          phase: 'Running',
          initContainerStatuses: [
            { name: 's', restartCount: 0, started: true, ready: true, state: { running: {} } },
          ],
          containerStatuses: [running],
        },
        { spec: { initContainers: [{ name: 's', restartPolicy: 'Always' }] } },
      ),
      '2/2',
      'Running',
    ],
    [
      'half done',
      pod(
        {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'True' }],
          containerStatuses: [ended(0, 'Completed'), { ...running, name: 'd' }],
        },
        { spec: { containers: [{ name: 'c' }, { name: 'd' }] } },
      ),
      '1/2',
      'Running',
    ],
  ])('%s', (_, object, ready, status) => {
    expect(row(object)).toEqual({ NAME: 'a', READY: ready, STATUS: status, RESTARTS: '0', AGE: '5m' });
  });

  it('restarts tell when', () => {
    const status = {
      ...running,
      restartCount: 2,
      lastState: { terminated: { exitCode: 1, finishedAt: ago(5) } },
    };
    expect(row(pod({ phase: 'Running', containerStatuses: [status] }))['RESTARTS']).toBe('2 (5s ago)');
  });

  it('wide', () => {
    const spec = { nodeName: 'n', readinessGates: [{ conditionType: 'x' }, { conditionType: 'y' }] };
    const status = {
      phase: 'Running',
      podIPs: [{ ip: '10.0.0.1' }],
      conditions: [{ type: 'x', status: 'True' }],
    };
    expect(row(pod(status, { spec }), true)).toMatchObject({
      IP: '10.0.0.1',
      NODE: 'n',
      'NOMINATED NODE': '<none>',
      'READINESS GATES': '1/2',
    });
    expect(row(pod({ phase: 'Pending' }), true)).toMatchObject({
      IP: '<none>',
      NODE: '<none>',
      'READINESS GATES': '<none>',
    });
  });
});

describe('other kinds', () => {
  it.each<[string, UnstructuredObject, Record<string, unknown>]>([
    [
      'a node',
      objectOf('v1', 'Node', {
        metadata: {
          ...AGE,
          labels: { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/control-plane': '' },
        },
        spec: { unschedulable: true },
        status: {
          conditions: [{ type: 'Ready', status: 'True' }],
          addresses: [
            { type: 'Hostname', address: 'a' },
            { type: 'InternalIP', address: '10.0.0.1' },
          ],
          nodeInfo: {
            kubeletVersion: 'v1.36.3',
            osImage: 'Linux',
            kernelVersion: '6.1',
            containerRuntimeVersion: 'containerd://2',
          },
        },
      }),
      {
        NAME: 'a',
        STATUS: 'Ready,SchedulingDisabled',
        ROLES: 'control-plane,worker',
        AGE: '5m',
        VERSION: 'v1.36.3',
        'INTERNAL-IP': '10.0.0.1',
        'EXTERNAL-IP': '<none>',
        'OS-IMAGE': 'Linux',
        'KERNEL-VERSION': '6.1',
        'CONTAINER-RUNTIME': 'containerd://2',
      },
    ],
    [
      'a node nobody heard of',
      objectOf('v1', 'Node', { metadata: AGE, spec: {}, status: { nodeInfo: { kubeletVersion: '' } } }),
      {
        NAME: 'a',
        STATUS: 'Unknown',
        ROLES: '<none>',
        AGE: '5m',
        VERSION: '',
        'INTERNAL-IP': '<none>',
        'EXTERNAL-IP': '<none>',
        'OS-IMAGE': '<unknown>',
        'KERNEL-VERSION': '<unknown>',
        'CONTAINER-RUNTIME': '<unknown>',
      },
    ],
    [
      'a balanced service',
      objectOf('v1', 'Service', {
        metadata: AGE,
        spec: {
          type: 'LoadBalancer',
          clusterIPs: ['10.96.0.1'],
          selector: { b: '2', a: '1' },
          ports: [
            { port: 80, nodePort: 30080, protocol: 'TCP' },
            { port: 81, protocol: 'UDP' },
          ],
        },
        status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
      }),
      {
        NAME: 'a',
        TYPE: 'LoadBalancer',
        'CLUSTER-IP': '10.96.0.1',
        'EXTERNAL-IP': '1.2.3.4',
        'PORT(S)': '80:30080/TCP,81/UDP',
        AGE: '5m',
        SELECTOR: 'a=1,b=2',
      },
    ],
    [
      'a service waiting for its balancer',
      objectOf('v1', 'Service', {
        metadata: AGE,
        spec: { type: 'LoadBalancer', clusterIPs: ['10.96.0.1'] },
        status: { loadBalancer: {} },
      }),
      {
        NAME: 'a',
        TYPE: 'LoadBalancer',
        'CLUSTER-IP': '10.96.0.1',
        'EXTERNAL-IP': '<pending>',
        'PORT(S)': '<none>',
        AGE: '5m',
        SELECTOR: '<none>',
      },
    ],
    [
      'endpoints',
      objectOf('v1', 'Endpoints', {
        metadata: AGE,
        subsets: [
          { addresses: ['1', '2', '3', '4'].map((d) => ({ ip: `10.0.0.${d}` })), ports: [{ port: 80 }] },
        ],
      }),
      { NAME: 'a', ENDPOINTS: '10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more...', AGE: '5m' },
    ],
    [
      'no endpoints',
      objectOf('v1', 'Endpoints', { metadata: AGE }),
      { NAME: 'a', ENDPOINTS: '<none>', AGE: '5m' },
    ],
    [
      'an empty slice',
      objectOf('discovery.k8s.io/v1', 'EndpointSlice', {
        metadata: AGE,
        addressType: 'IPv4',
        endpoints: null,
        ports: null,
      }),
      { NAME: 'a', ADDRESSTYPE: 'IPv4', PORTS: '<unset>', ENDPOINTS: '<unset>', AGE: '5m' },
    ],
    [
      'a deployment',
      objectOf('apps/v1', 'Deployment', {
        metadata: AGE,
        spec: {
          replicas: 2,
          selector: { matchLabels: { app: 'a' } },
          template: {
            spec: {
              containers: [
                { name: 'c', image: 'i' },
                { name: 'd', image: 'j' },
              ],
            },
          },
        },
        status: { readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 },
      }),
      {
        NAME: 'a',
        READY: '1/2',
        'UP-TO-DATE': 2,
        AVAILABLE: 1,
        AGE: '5m',
        CONTAINERS: 'c,d',
        IMAGES: 'i,j',
        SELECTOR: 'app=a',
      },
    ],
    [
      'a daemon set',
      objectOf('apps/v1', 'DaemonSet', {
        metadata: AGE,
        spec: {
          selector: { matchLabels: { app: 'a' } },
          template: { spec: { containers: [{ name: 'c', image: 'i' }] } },
        },
        status: { desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 1 },
      }),
      {
        NAME: 'a',
        DESIRED: 2,
        CURRENT: 2,
        READY: 1,
        'UP-TO-DATE': 0,
        AVAILABLE: 0,
        'NODE SELECTOR': '<none>',
        AGE: '5m',
        CONTAINERS: 'c',
        IMAGES: 'i',
        SELECTOR: 'app=a',
      },
    ],
    [
      'an event',
      objectOf('v1', 'Event', {
        metadata: AGE,
        involvedObject: { kind: 'Pod', name: 'p', fieldPath: 'spec' },
        reason: 'Started',
        type: 'Normal',
        message: 'hello \n',
        source: { component: 'kubelet', host: 'n' },
        firstTimestamp: ago(600),
        lastTimestamp: ago(10),
        count: 3,
      }),
      {
        'LAST SEEN': '10s',
        TYPE: 'Normal',
        REASON: 'Started',
        OBJECT: 'pod/p',
        SUBOBJECT: 'spec',
        SOURCE: 'kubelet, n',
        MESSAGE: 'hello',
        'FIRST SEEN': '10m',
        COUNT: 3,
        NAME: 'a',
      },
    ],
    [
      'a new-style event',
      objectOf('v1', 'Event', {
        involvedObject: { kind: 'Node', name: 'n' },
        eventTime: ago(30),
        reportingComponent: 'ccm',
        source: {},
      }),
      {
        'LAST SEEN': '30s',
        TYPE: '',
        REASON: '',
        OBJECT: 'node/n',
        SUBOBJECT: '',
        SOURCE: 'ccm',
        MESSAGE: '',
        'FIRST SEEN': '30s',
        COUNT: 1,
        NAME: 'a',
      },
    ],
    [
      'a config map',
      objectOf('v1', 'ConfigMap', { metadata: AGE, data: { a: '', b: '' }, binaryData: { c: '' } }),
      { NAME: 'a', DATA: 3, AGE: '5m' },
    ],
    [
      'a role',
      objectOf('rbac.authorization.k8s.io/v1', 'Role', { metadata: AGE }),
      { NAME: 'a', 'CREATED AT': ago(300) },
    ],
    [
      'a binding',
      objectOf('rbac.authorization.k8s.io/v1', 'RoleBinding', {
        metadata: AGE,
        roleRef: { kind: 'ClusterRole', name: 'view' },
        subjects: [
          { kind: 'User', name: 'u' },
          { kind: 'User', name: 'v' },
          { kind: 'ServiceAccount', name: 's', namespace: 'n' },
        ],
      }),
      { NAME: 'a', ROLE: 'ClusterRole/view', AGE: '5m', USERS: 'u, v', GROUPS: '', SERVICEACCOUNTS: 'n/s' },
    ],
    [
      'a request for a certificate',
      objectOf('certificates.k8s.io/v1', 'CertificateSigningRequest', {
        metadata: AGE,
        spec: { signerName: 's', username: 'u', expirationSeconds: 3600 },
        status: { conditions: [{ type: 'Approved' }], certificate: 'x' },
      }),
      {
        NAME: 'a',
        AGE: '5m',
        SIGNERNAME: 's',
        REQUESTOR: 'u',
        REQUESTEDDURATION: '60m',
        CONDITION: 'Approved,Issued',
      },
    ],
    [
      'the default storage class',
      objectOf('storage.k8s.io/v1', 'StorageClass', {
        metadata: { ...AGE, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
        provisioner: 'p',
      }),
      {
        NAME: 'a (default)',
        PROVISIONER: 'p',
        RECLAIMPOLICY: 'Delete',
        VOLUMEBINDINGMODE: 'Immediate',
        ALLOWVOLUMEEXPANSION: false,
        AGE: '5m',
      },
    ],
    [
      'a revision',
      objectOf('apps/v1', 'ControllerRevision', {
        metadata: {
          ...AGE,
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'u', controller: true },
          ],
        },
        revision: 2,
      }),
      { NAME: 'a', CONTROLLER: 'daemonset.apps/d', REVISION: 2, AGE: '5m' },
    ],
  ])('%s', (_, object, expected) => {
    expect(row(object, true)).toEqual(expected);
  });
});

describe('the table of kinds', () => {
  it('has every name once', () => {
    for (const of of [
      (k: (typeof builtinKinds)[number]) => `${k.group}/${k.plural}`,
      (k: (typeof builtinKinds)[number]) => `${k.group}/${k.kind}`,
    ]) {
      expect(new Set(builtinKinds.map(of)).size).toBe(builtinKinds.length);
    }
    const short = builtinKinds.flatMap((kind) => kind.shortNames);
    expect(new Set(short).size).toBe(short.length);
  });
});

describe('ages', () => {
  it.each([
    [-5, '<invalid>'],
    [-1, '0s'],
    [0, '0s'],
    [119, '119s'],
    [120, '2m'],
    [125, '2m5s'],
    [600, '10m'],
    [10_799, '179m'],
    [10_800, '3h'],
    [11_000, '3h3m'],
    [28_800, '8h'],
    [172_799, '47h'],
    [180_000, '2d2h'],
    [691_200, '8d'],
    [63_072_000, '2y'],
    [70_000_000, '2y80d'],
    [400_000_000, '12y'],
  ])('%i s: %s', (seconds, text) => {
    expect(humanDuration(seconds * 1000)).toBe(text);
  });
});
