import { describe, expect, it } from 'vitest';
import { createAdmission } from '../admission/chain.ts';
import {
  attributesOf,
  contextOf,
  created,
  facilities,
  kindOf,
  objectOf,
  podOf,
  serviceOf,
  workloadOf,
} from './testing/context.ts';

const CONTAINER = {
  name: 'c',
  image: 'nginx:1',
  resources: {},
  imagePullPolicy: 'IfNotPresent',
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
};
const POD_SPEC = {
  containers: [CONTAINER],
  dnsPolicy: 'ClusterFirst',
  restartPolicy: 'Always',
  schedulerName: 'default-scheduler',
  securityContext: {},
  terminationGracePeriodSeconds: 30,
};
const TEMPLATE = { metadata: { labels: { app: 'a' } }, spec: POD_SPEC };
const SELECTOR = { matchLabels: { app: 'a' } };

async function specAndStatus(
  object: Parameters<typeof created>[0],
): Promise<{ spec: unknown; status: unknown }> {
  const { spec, status } = await created(object);
  return { spec, status };
}

describe('objects read back as upstream shows them', () => {
  it('Pod, with what admission adds', async () => {
    const server = facilities([
      objectOf('v1', 'Namespace', { name: 'default', status: { phase: 'Active' } }),
      objectOf('v1', 'ServiceAccount', { name: 'default', namespace: 'default' }),
    ]);
    const pod = podOf({
      containers: [
        {
          name: 'c',
          image: 'nginx',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: 0.5, memory: '1024Mi' } },
          readinessProbe: { httpGet: { port: 80 } },
          env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
        },
      ],
      volumes: [{ name: 'scratch' }, { name: 'settings', configMap: { name: 'settings' } }],
    });
    kindOf(pod).strategy.defaults?.(pod);
    await createAdmission().admit(attributesOf('CREATE', pod, server));
    await kindOf(pod).strategy.prepareForCreate?.(pod, contextOf(server));

    expect(pod).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', namespace: 'default' },
      spec: {
        containers: [
          {
            name: 'c',
            image: 'nginx',
            imagePullPolicy: 'Always',
            ports: [{ containerPort: 80, protocol: 'TCP' }],
            env: [{ name: 'IP', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } } }],
            resources: { limits: { cpu: '500m', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
            readinessProbe: {
              httpGet: { path: '/', port: 80, scheme: 'HTTP' },
              failureThreshold: 3,
              periodSeconds: 10,
              successThreshold: 1,
              timeoutSeconds: 1,
            },
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            volumeMounts: [
              {
                name: 'kube-api-access-xxxxx',
                readOnly: true,
                mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
              },
            ],
          },
        ],
        dnsPolicy: 'ClusterFirst',
        enableServiceLinks: true,
        preemptionPolicy: 'PreemptLowerPriority',
        priority: 0,
        restartPolicy: 'Always',
        schedulerName: 'default-scheduler',
        securityContext: {},
        serviceAccount: 'default',
        serviceAccountName: 'default',
        terminationGracePeriodSeconds: 30,
        tolerations: [
          {
            key: 'node.kubernetes.io/not-ready',
            operator: 'Exists',
            effect: 'NoExecute',
            tolerationSeconds: 300,
          },
          {
            key: 'node.kubernetes.io/unreachable',
            operator: 'Exists',
            effect: 'NoExecute',
            tolerationSeconds: 300,
          },
        ],
        volumes: [
          { name: 'scratch', emptyDir: {} },
          { name: 'settings', configMap: { name: 'settings', defaultMode: 420 } },
          {
            name: 'kube-api-access-xxxxx',
            projected: {
              defaultMode: 420,
              sources: [
                { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
                { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
                {
                  downwardAPI: {
                    items: [
                      { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } },
                    ],
                  },
                },
              ],
            },
          },
        ],
      },
      status: { phase: 'Pending', qosClass: 'Guaranteed' },
    });
  });

  it('Deployment', async () => {
    expect(await specAndStatus(workloadOf('Deployment'))).toEqual({
      spec: {
        progressDeadlineSeconds: 600,
        replicas: 1,
        revisionHistoryLimit: 10,
        selector: SELECTOR,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
        template: TEMPLATE,
      },
      status: {},
    });
  });

  it('ReplicaSet', async () => {
    expect(await specAndStatus(workloadOf('ReplicaSet'))).toEqual({
      spec: { replicas: 1, selector: SELECTOR, template: TEMPLATE },
      status: { replicas: 0 },
    });
  });

  it('DaemonSet', async () => {
    const set = await created(workloadOf('DaemonSet'));
    expect(set.metadata.annotations).toEqual({ 'deprecated.daemonset.template.generation': '1' });
    expect({ spec: set.spec, status: set.status }).toEqual({
      spec: {
        revisionHistoryLimit: 10,
        selector: SELECTOR,
        template: TEMPLATE,
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      },
      status: { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 },
    });
  });

  it('Service of type LoadBalancer', async () => {
    const service = await created(serviceOf({ type: 'LoadBalancer', selector: { app: 'a' } }));
    const { clusterIP, ports, ...rest } = service.spec as {
      clusterIP: string;
      ports: { nodePort: number }[];
    };
    expect(clusterIP).toMatch(/^10\.96\.\d+\.\d+$/);
    expect(ports).toEqual([{ port: 80, protocol: 'TCP', targetPort: 80, nodePort: expect.any(Number) }]);
    expect(rest).toEqual({
      allocateLoadBalancerNodePorts: true,
      clusterIPs: [clusterIP],
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      selector: { app: 'a' },
      sessionAffinity: 'None',
      type: 'LoadBalancer',
    });
    expect(service.status).toEqual({ loadBalancer: {} });
  });

  it.each([
    [
      'headless',
      { clusterIP: 'None', selector: { app: 'a' } },
      { ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' },
    ],
    [
      'headless without selector',
      { clusterIP: 'None' },
      { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' },
    ],
  ])('Service, %s', async (_, given, families) => {
    expect((await created(serviceOf(given))).spec).toEqual({
      ...given,
      ...families,
      clusterIPs: ['None'],
      internalTrafficPolicy: 'Cluster',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      sessionAffinity: 'None',
      type: 'ClusterIP',
    });
  });

  it('Service of type ExternalName', async () => {
    const service = await created(
      objectOf('v1', 'Service', { spec: { type: 'ExternalName', externalName: 'example.com' } }),
    );
    expect(service.spec).toEqual({
      externalName: 'example.com',
      sessionAffinity: 'None',
      type: 'ExternalName',
    });
  });

  it.each([
    [
      'Namespace',
      objectOf('v1', 'Namespace'),
      {
        metadata: { name: 'a', labels: { 'kubernetes.io/metadata.name': 'a' } },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      },
    ],
    ['Secret', objectOf('v1', 'Secret', { stringData: { a: 'b' } }), { type: 'Opaque', data: { a: 'Yg==' } }],
    ['empty ConfigMap', objectOf('v1', 'ConfigMap', { data: {} }), {}],
    ['ServiceAccount', objectOf('v1', 'ServiceAccount'), {}],
    ['Lease', objectOf('coordination.k8s.io/v1', 'Lease'), { spec: {} }],
    ['ClusterRole without rules', objectOf('rbac.authorization.k8s.io/v1', 'ClusterRole'), { rules: null }],
    [
      'CSINode',
      objectOf('storage.k8s.io/v1', 'CSINode', { spec: { drivers: [] } }),
      { spec: { drivers: null } },
    ],
    [
      'PriorityClass',
      objectOf('scheduling.k8s.io/v1', 'PriorityClass', { value: 5 }),
      { value: 5, preemptionPolicy: 'PreemptLowerPriority' },
    ],
    [
      'StorageClass',
      objectOf('storage.k8s.io/v1', 'StorageClass', { provisioner: 'x' }),
      { provisioner: 'x', reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
    ],
    [
      'Event',
      objectOf('v1', 'Event', {
        namespace: 'default',
        involvedObject: { kind: 'Pod', namespace: 'default' },
      }),
      {
        involvedObject: { kind: 'Pod', namespace: 'default' },
        eventTime: null,
        firstTimestamp: null,
        lastTimestamp: null,
        reportingComponent: '',
        reportingInstance: '',
        source: {},
      },
    ],
    [
      'EndpointSlice',
      objectOf('discovery.k8s.io/v1', 'EndpointSlice', {
        addressType: 'IPv4',
        endpoints: [],
        ports: [{ port: 80 }],
      }),
      { addressType: 'IPv4', endpoints: null, ports: [{ name: '', port: 80, protocol: 'TCP' }] },
    ],
    [
      'ClusterRoleBinding',
      objectOf('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', {
        roleRef: { kind: 'ClusterRole', name: 'view' },
        subjects: [
          { kind: 'User', name: 'u' },
          { kind: 'ServiceAccount', name: 's', namespace: 'n' },
        ],
      }),
      {
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
        subjects: [
          { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'u' },
          { kind: 'ServiceAccount', name: 's', namespace: 'n' },
        ],
      },
    ],
  ])('%s', async (_, given, expected) => {
    const { apiVersion: _version, kind: _kind, metadata, ...rest } = await created(given);
    expect({ metadata, ...rest }).toEqual({ metadata: given.metadata, ...expected });
  });

  it('Node: what Go writes of an empty status', async () => {
    expect((await created(objectOf('v1', 'Node', { status: { capacity: { cpu: '2' } } }))).status).toEqual({
      allocatable: { cpu: '2' },
      capacity: { cpu: '2' },
      daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
      nodeInfo: {
        architecture: '',
        bootID: '',
        containerRuntimeVersion: '',
        kernelVersion: '',
        kubeProxyVersion: '',
        kubeletVersion: '',
        machineID: '',
        operatingSystem: '',
        osImage: '',
        systemUUID: '',
      },
    });
  });

  it('defaults filled twice are the same as filled once', async () => {
    for (const object of [
      podOf(),
      workloadOf('Deployment'),
      workloadOf('DaemonSet'),
      serviceOf({ type: 'NodePort' }),
    ]) {
      const once = await created(object);
      const twice = structuredClone(once);
      kindOf(object).strategy.defaults?.(twice);
      expect(twice).toEqual(once);
    }
  });
});

describe('image pull policy', () => {
  it.each([
    ['nginx', 'Always'],
    ['nginx:latest', 'Always'],
    ['nginx:1.27', 'IfNotPresent'],
    ['registry:5000/nginx', 'Always'],
    ['registry:5000/nginx:1', 'IfNotPresent'],
    ['nginx@sha256:abc', 'IfNotPresent'],
  ])('%s: %s', async (image, policy) => {
    const pod = await created(podOf({ containers: [{ name: 'c', image }] }));
    expect((pod.spec as { containers: { imagePullPolicy: string }[] }).containers[0]?.imagePullPolicy).toBe(
      policy,
    );
  });
});

describe('decoding', () => {
  it.each([
    [
      'a text for a number',
      workloadOf('Deployment', { replicas: 'three' }),
      'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      'a number for a text',
      podOf({ containers: [{ name: 'c', image: 'i', env: [{ name: 'A', value: 1 }] }] }),
      'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string',
    ],
    [
      'an object for a list',
      podOf({ containers: {} }),
      'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
    ],
    [
      'a bad quantity',
      podOf({ containers: [{ name: 'c', resources: { limits: { cpu: 'lots' } } }] }),
      'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression \'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$\'',
    ],
    [
      'bad base64',
      objectOf('v1', 'Secret', { data: { a: 'not base64' } }),
      'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 3',
    ],
  ])('refuses %s', async (_, object, message) => {
    await expect(created(object)).rejects.toMatchObject({ code: 400, message });
  });

  it('drops what the type does not know and what is null', async () => {
    const map = objectOf('v1', 'ConfigMap', { data: { a: 'b' }, binaryData: null, surprise: true });
    expect(await created(map)).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
      data: { a: 'b' },
    });
  });
});
