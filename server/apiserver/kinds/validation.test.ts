import { describe, expect, it } from 'vitest';
import type { UnstructuredObject } from '#server/kube';
import {
  created,
  facilities,
  objectOf,
  podOf,
  refusalOf,
  serviceOf,
  updated,
  workloadOf,
} from './testing/context.ts';

const container = (parts: Record<string, unknown>): Record<string, unknown> => ({
  containers: [{ name: 'c', image: 'i', ...parts }],
});
const rbac = (kind: string, parts: Record<string, unknown>): UnstructuredObject =>
  objectOf('rbac.authorization.k8s.io/v1', kind, parts);
const REF = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' };

describe('creates refused, in the words of upstream', () => {
  it.each<[UnstructuredObject, string]>([
    [podOf({ containers: [] }), 'Pod "a" is invalid: spec.containers: Required value'],
    [podOf({ containers: [{ name: 'c' }] }), 'Pod "a" is invalid: spec.containers[0].image: Required value'],
    [
      podOf({
        containers: [
          { name: 'c', image: 'i' },
          { name: 'c', image: 'j' },
        ],
      }),
      'Pod "a" is invalid: spec.containers[1].name: Duplicate value: "c"',
    ],
    [
      podOf({ restartPolicy: 'Sometimes' }),
      'Pod "a" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
    ],
    [
      podOf(container({ ports: [{ containerPort: 70000 }] })),
      'Pod "a" is invalid: spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
    ],
    [
      podOf(container({ resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } })),
      'Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ],
    [
      podOf(container({ volumeMounts: [{ name: 'v', mountPath: '/v' }] })),
      'Pod "a" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ],
    [
      podOf(container({ livenessProbe: {} })),
      'Pod "a" is invalid: spec.containers[0].livenessProbe: Required value: must specify a handler type',
    ],
    [
      podOf({ tolerations: [{ effect: 'NoSchedule' }] }),
      'Pod "a" is invalid: spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
    [
      workloadOf('Deployment', { selector: { matchLabels: { app: 'b' } } }),
      'Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
    ],
    [
      workloadOf('Deployment', { replicas: -1 }),
      'Deployment.apps "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      workloadOf('Deployment', { strategy: { type: 'Recreate', rollingUpdate: {} } }),
      'Deployment.apps "a" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is \'Recreate\'',
    ],
    [
      workloadOf('DaemonSet', { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } }),
      'DaemonSet.apps "a" is invalid: spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0',
    ],
    [serviceOf({ ports: [] }), 'Service "a" is invalid: spec.ports: Required value'],
    [
      serviceOf({ ports: [{ port: 80 }, { port: 81 }] }),
      'Service "a" is invalid: [spec.ports[0].name: Required value, spec.ports[1].name: Required value]',
    ],
    [
      serviceOf({ ports: [{ port: 80, nodePort: 30000 }] }),
      'Service "a" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` is \'ClusterIP\'',
    ],
    [
      serviceOf({ type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }),
      'Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    ],
    [
      serviceOf({ clusterIP: '1.2.3.4' }),
      'Service "a" is invalid: spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range',
    ],
    [
      serviceOf({ clusterIP: 'nonsense' }),
      'Service "a" is invalid: spec.clusterIPs[0]: Invalid value: "nonsense": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      serviceOf({ type: 'Balanced' }),
      'Service "a" is invalid: spec.type: Unsupported value: "Balanced": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
    ],
    [
      serviceOf({ loadBalancerClass: 'x.y/z' }),
      'Service "a" is invalid: spec.loadBalancerClass: Forbidden: may only be used when `type` is \'LoadBalancer\'',
    ],
    [
      objectOf('v1', 'ConfigMap', { data: { 'a b': '' } }),
      "ConfigMap \"a\" is invalid: data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ],
    [
      objectOf('v1', 'Secret', { type: 'kubernetes.io/tls' }),
      'Secret "a" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]',
    ],
    [
      rbac('Role', { rules: [{ apiGroups: [''], resources: ['pods'], verbs: [] }] }),
      'Role.rbac.authorization.k8s.io "a" is invalid: rules[0].verbs: Required value: verbs must contain at least one value',
    ],
    [
      rbac('RoleBinding', { roleRef: REF, subjects: [{ kind: 'Robot', name: 'r' }] }),
      'RoleBinding.rbac.authorization.k8s.io "a" is invalid: subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"',
    ],
    [
      objectOf('v1', 'Node', { spec: { taints: [{ key: 'a', effect: 'Never' }] } }),
      'Node "a" is invalid: spec.taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"',
    ],
    [
      objectOf('coordination.k8s.io/v1', 'Lease', { spec: { leaseDurationSeconds: 0 } }),
      'Lease.coordination.k8s.io "a" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    ],
    [
      objectOf('discovery.k8s.io/v1', 'EndpointSlice', {
        addressType: 'IPv4',
        endpoints: [{ addresses: [] }],
      }),
      'EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses: Required value: must contain at least 1 address',
    ],
    [
      objectOf('v1', 'Event', { namespace: 'x', involvedObject: { namespace: 'y' } }),
      'Event "a" is invalid: involvedObject.namespace: Invalid value: "y": does not match event.namespace',
    ],
  ])('%#', async (object, message) => {
    expect(await refusalOf(() => created(object))).toBe(message);
  });
});

describe('updates refused, in the words of upstream', () => {
  const set = (path: string, value: unknown) => (object: UnstructuredObject) => {
    const steps = path.split('.');
    let target = object as unknown as Record<string, Record<string, unknown>>;
    for (const step of steps.slice(0, -1)) target = (target[step] ??= {}) as never;
    (target as Record<string, unknown>)[steps.at(-1) ?? ''] = value;
  };
  const frozen = objectOf('v1', 'ConfigMap', { immutable: true, data: { a: 'b' } });

  it.each<[UnstructuredObject, (object: UnstructuredObject) => void, string]>([
    [
      workloadOf('Deployment'),
      (d) => {
        set('spec.selector', { matchLabels: { x: 'y' } })(d);
        set('spec.template.metadata.labels', { x: 'y' })(d);
      },
      'Deployment.apps "a" is invalid: spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: field is immutable',
    ],
    [
      podOf(),
      set('spec.nodeName', 'n'),
      'Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
    ],
    [
      podOf(),
      set('spec.containers', [
        { name: 'c', image: 'i' },
        { name: 'd', image: 'i' },
      ]),
      'Pod "a" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers',
    ],
    [
      objectOf('v1', 'Node', { spec: { providerID: 'x://1' } }),
      set('spec.providerID', 'x://2'),
      'Node "a" is invalid: [spec.providerID: Forbidden: node updates may not change providerID except from "" to valid, []: Forbidden: node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)]',
    ],
    [
      frozen,
      set('data', { a: 'c' }),
      'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set',
    ],
    [
      objectOf('v1', 'Secret'),
      set('type', 'x'),
      'Secret "a" is invalid: type: Invalid value: "x": field is immutable',
    ],
    [
      rbac('ClusterRoleBinding', { roleRef: REF }),
      set('roleRef.name', 'edit'),
      'ClusterRoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}: cannot change roleRef',
    ],
    [
      objectOf('scheduling.k8s.io/v1', 'PriorityClass', { value: 1 }),
      set('value', 2),
      'PriorityClass.scheduling.k8s.io "a" is invalid: value: Forbidden: may not be changed in an update.',
    ],
  ])('%#', async (object, change, message) => {
    const server = facilities();
    const old = await created(object, server);
    expect(await refusalOf(() => updated(old, change, server))).toBe(message);
  });

  it('a Service keeps its cluster IP', async () => {
    const server = facilities();
    const old = await created(serviceOf({ clusterIP: '10.96.3.4' }), server);
    expect(await refusalOf(() => updated(old, set('spec.clusterIP', '10.96.3.5'), server))).toBe(
      'Service "a" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.3.5"]: may not change once set',
    );
  });
});

describe('updates allowed', () => {
  it.each<[string, UnstructuredObject, (object: UnstructuredObject) => void]>([
    [
      "a pod's image",
      podOf(),
      (pod) => void ((pod.spec as { containers: { image: string }[] }).containers[0]!.image = 'nginx:2'),
    ],
    [
      'another toleration',
      podOf(),
      (pod) => void ((pod.spec as Record<string, unknown>).tolerations = [{ key: 'x', operator: 'Exists' }]),
    ],
    [
      "a node's providerID, once",
      objectOf('v1', 'Node'),
      (node) => void (node.spec = { providerID: 'x://1' }),
    ],
    [
      'cordon',
      objectOf('v1', 'Node', { spec: { providerID: 'x://1' } }),
      (node) => void ((node.spec as Record<string, unknown>).unschedulable = true),
    ],
    [
      'replicas',
      workloadOf('Deployment'),
      (deployment) => void ((deployment.spec as Record<string, unknown>).replicas = 3),
    ],
  ])('%s', async (_, object, change) => {
    const server = facilities();
    const old = await created(object, server);
    await expect(updated(old, change, server)).resolves.toBeDefined();
  });
});

describe('warnings', () => {
  it('of ports that mean the same, with their paths', async () => {
    const { kindOf } = await import('./testing/context.ts');
    const ports = [
      { containerPort: 80, name: 'a' },
      { containerPort: 80, name: 'b' },
    ];
    const deployment = workloadOf('Deployment', {
      template: {
        metadata: { labels: { app: 'a' } },
        spec: { containers: [{ name: 'c', image: 'i', ports }] },
      },
    });
    expect(kindOf(deployment).strategy.warnings?.(await created(deployment))).toEqual([
      'spec.template.spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]',
    ]);
  });
});
