import type { CustomResourceDefinition, JsonSchema } from '#server/kube';
import {
  AGE,
  CONDITIONS,
  type ColumnFact,
  conditionPath,
  definition,
  flag,
  intOrPercent,
  list,
  long,
  object,
  open,
  REFERENCE,
  REPLICA_COUNTS,
  TEMPLATE_METADATA,
  text,
  texts,
  time,
  WIDE,
  whole,
} from './schema.ts';

const ARGS = list(
  'Flags of the component.',
  object('One flag.', { name: text('Name without dashes.'), value: text('Value.') }, ['name', 'value']),
);

function component(description: string, more: Record<string, JsonSchema> = {}): JsonSchema {
  return object(description, {
    extraArgs: ARGS,
    extraEnvs: list('Environment of the component.', open('One variable.')),
    extraVolumes: list('Host paths of the component.', open('One volume.')),
    ...more,
  });
}

const ENDPOINT = object('Where the API server of this machine listens.', {
  advertiseAddress: text('Address.'),
  bindPort: whole('Port.'),
});

const NODE_REGISTRATION = object('How the node registers.', {
  name: text('Name of the Node; the host name when left out.'),
  criSocket: text('Socket of the container runtime.'),
  taints: list(
    'Taints the Node registers with; an empty list means none.',
    object(
      'One taint.',
      {
        key: text('Key.'),
        value: text('Value.'),
        effect: text('Effect.'),
        timeAdded: time('When it was added.'),
      },
      ['effect', 'key'],
    ),
  ),
  kubeletExtraArgs: ARGS,
  ignorePreflightErrors: texts('Preflight checks whose errors are ignored.'),
  imagePullPolicy: text('When images are pulled.', ['Always', 'IfNotPresent', 'Never']),
  imagePullSerial: flag('Pull images one after the other.'),
});

const CONFIG_SPEC_FIELDS: Record<string, JsonSchema> = {
  clusterConfiguration: object("kubeadm's ClusterConfiguration.", {
    controlPlaneEndpoint: text('Address and port of the control plane.'),
    apiServer: component('The API server.', { certSANs: texts('Further names in its certificate.') }),
    controllerManager: component('The controller manager.'),
    scheduler: component('The scheduler.'),
    etcd: object('etcd.', {
      local: open('An etcd on each control plane machine.'),
      external: open('An etcd somewhere else.'),
    }),
    dns: object('CoreDNS.', { imageRepository: text('Registry.'), imageTag: text('Tag.') }),
    certificatesDir: text('Where certificates are on the machine.'),
    imageRepository: text('Registry of the control plane images.'),
    featureGates: {
      type: 'object',
      description: 'Feature gates of kubeadm.',
      additionalProperties: { type: 'boolean' },
    },
    certificateValidityPeriodDays: whole('Days certificates are valid.'),
    caCertificateValidityPeriodDays: whole('Days certificate authorities are valid.'),
    encryptionAlgorithm: text('Kind of keys.', [
      'ECDSA-P256',
      'ECDSA-P384',
      'RSA-2048',
      'RSA-3072',
      'RSA-4096',
    ]),
  }),
  initConfiguration: object("kubeadm's InitConfiguration, for the first control plane machine.", {
    bootstrapTokens: list('Tokens to make.', open('One token.')),
    nodeRegistration: NODE_REGISTRATION,
    localAPIEndpoint: ENDPOINT,
    skipPhases: texts('Phases to leave out.'),
    patches: object('Patches of static pods.', { directory: text('Where they are.') }),
    timeouts: open('Limits of waiting.'),
  }),
  joinConfiguration: object("kubeadm's JoinConfiguration, for all other machines.", {
    nodeRegistration: NODE_REGISTRATION,
    caCertPath: text('Where the certificate authority is on the machine.'),
    discovery: object('How the control plane is found.', {
      bootstrapToken: object('By a bootstrap token.', {
        token: text('The token.'),
        apiServerEndpoint: text('Address and port.'),
        caCertHashes: texts('Hashes of the public key of the certificate authority.'),
        unsafeSkipCAVerification: flag('Do not check it.'),
      }),
      file: open('By a kubeconfig.'),
      tlsBootstrapToken: text('Token for the certificate request.'),
    }),
    controlPlane: object('This machine is a control plane.', { localAPIEndpoint: ENDPOINT }),
    skipPhases: texts('Phases to leave out.'),
    patches: object('Patches of static pods.', { directory: text('Where they are.') }),
    timeouts: open('Limits of waiting.'),
  }),
  files: list(
    'Files to write on the machine.',
    object(
      'One file.',
      {
        path: text('Where.'),
        owner: text('Owner and group.'),
        permissions: text('Mode in octal.'),
        encoding: text('Encoding of the content.', ['base64', 'gzip', 'gzip+base64']),
        append: flag('Add to what is there.'),
        content: text('The content.'),
        contentFormat: text('Raw, or a template.', ['Raw', 'Template']),
        contentFrom: object(
          'Where the content comes from.',
          {
            secret: object('A Secret.', { name: text('Its name.'), key: text('Key in it.') }, [
              'key',
              'name',
            ]),
          },
          ['secret'],
        ),
      },
      ['path'],
    ),
  ),
  diskSetup: open('Partitions and file systems.'),
  mounts: list('Mount points.', texts('One mount point.')),
  bootCommands: texts('Commands run on every boot, early.'),
  preKubeadmCommands: texts('Commands run before kubeadm.'),
  postKubeadmCommands: texts('Commands run after kubeadm.'),
  users: list('Users to make.', open('One user.')),
  ntp: open('Time synchronisation.'),
  format: text('Format of the bootstrap data.', ['cloud-config', 'ignition']),
  ignition: open('What only Ignition knows.'),
  verbosity: whole('Verbosity of kubeadm.'),
};
const CONFIG_SPEC = object('spec is the desired state.', CONFIG_SPEC_FIELDS);

const OBSERVED: Record<string, JsonSchema> = {
  observedGeneration: long('Generation the controller has seen.'),
  deprecated: open('Fields of older versions.'),
};
const CLUSTER_LABEL: ColumnFact = [
  'Cluster',
  'string',
  ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",
  'Cluster',
];
const PAUSED: ColumnFact = [
  'Paused',
  'string',
  conditionPath('Paused'),
  'Whether reconciling is paused',
  WIDE,
];

const CONTROL_PLANE_SPEC = object(
  'spec is the desired state.',
  {
    replicas: whole('Control plane Machines wanted; odd when etcd is on them.'),
    version: text('Kubernetes version.'),
    machineTemplate: object(
      'The Machines to make.',
      {
        metadata: TEMPLATE_METADATA,
        spec: object(
          'What the Machines are.',
          {
            infrastructureRef: REFERENCE('Template of the infrastructure of each Machine.'),
            readinessGates: list(
              'Further conditions the Ready condition of a Machine waits for.',
              open('One gate.'),
            ),
            deletion: open('Limits of a deletion.'),
            taints: list('Taints of the Nodes.', open('One taint.')),
          },
          ['infrastructureRef'],
        ),
      },
      ['spec'],
    ),
    kubeadmConfigSpec: object('How the machines become control plane nodes.', CONFIG_SPEC_FIELDS),
    rollout: object('How a change is rolled out.', {
      before: open('A rollout is wanted before certificates expire.'),
      after: time('A rollout is wanted after this time.'),
      strategy: object(
        'The strategy.',
        {
          type: text('RollingUpdate.', ['RollingUpdate']),
          rollingUpdate: object('Limits.', { maxSurge: intOrPercent('Machines above the wanted number.') }),
        },
        ['type'],
      ),
    }),
    remediation: open('How unhealthy Machines are replaced.'),
    machineNaming: object('How Machines are named.', { template: text('Template of the name.') }),
  },
  ['machineTemplate', 'version'],
);

const CONTROL_PLANE_STATUS = object('What was observed.', {
  conditions: CONDITIONS,
  initialization: object('What happens once in the life of a control plane.', {
    controlPlaneInitialized: flag('It takes requests.'),
  }),
  selector: text('The selector as text.'),
  ...REPLICA_COUNTS,
  version: text('The lowest version of its Machines.'),
  lastRemediation: open('The last replacement of an unhealthy Machine.'),
  ...OBSERVED,
});

const CONTROL_PLANE_COLUMNS: ColumnFact[] = [
  CLUSTER_LABEL,
  ['Available', 'string', conditionPath('Available'), 'Whether all checks pass'],
  ['Desired', 'integer', '.spec.replicas', 'Machines wanted'],
  ['Current', 'integer', '.status.replicas', 'Machines there are'],
  ['Ready', 'integer', '.status.readyReplicas', 'Machines whose Ready condition is true'],
  ['Available', 'integer', '.status.availableReplicas', 'Machines whose Available condition is true'],
  ['Up-to-date', 'integer', '.status.upToDateReplicas', 'Machines whose UpToDate condition is true'],
  PAUSED,
  ['Initialized', 'boolean', '.status.initialization.controlPlaneInitialized', 'Whether it takes requests'],
  AGE,
  ['Version', 'string', '.spec.version', 'Kubernetes version'],
];

/** Models the types of sigs.k8s.io/cluster-api/api/{bootstrap,controlplane}/kubeadm/v1beta2. */
export function kubeadmDefinitions(): CustomResourceDefinition[] {
  const bootstrap = { group: 'bootstrap.cluster.x-k8s.io', version: 'v1beta2' };
  return [
    definition({
      ...bootstrap,
      kind: 'KubeadmConfig',
      plural: 'kubeadmconfigs',
      description: 'KubeadmConfig makes the bootstrap data of one machine.',
      spec: CONFIG_SPEC,
      status: object('What was observed.', {
        conditions: CONDITIONS,
        dataSecretName: text('Secret with the bootstrap data.'),
        initialization: object('What happens once.', {
          dataSecretCreated: flag('The bootstrap data is there.'),
        }),
        ...OBSERVED,
      }),
      columns: [
        CLUSTER_LABEL,
        PAUSED,
        [
          'Data secret created',
          'string',
          '.status.initialization.dataSecretCreated',
          'Whether the bootstrap data is there',
        ],
        AGE,
      ],
    }),
    definition({
      ...bootstrap,
      kind: 'KubeadmConfigTemplate',
      plural: 'kubeadmconfigtemplates',
      description: 'KubeadmConfigTemplate is copied into a KubeadmConfig for each Machine.',
      spec: object(
        'The template.',
        {
          template: object('The KubeadmConfigs to make.', { metadata: TEMPLATE_METADATA, spec: CONFIG_SPEC }),
        },
        ['template'],
      ),
      columns: [AGE],
    }),
    definition({
      group: 'controlplane.cluster.x-k8s.io',
      version: 'v1beta2',
      kind: 'KubeadmControlPlane',
      plural: 'kubeadmcontrolplanes',
      shortNames: ['kcp'],
      scale: true,
      description: 'KubeadmControlPlane keeps the control plane Machines of a cluster.',
      spec: CONTROL_PLANE_SPEC,
      status: CONTROL_PLANE_STATUS,
      columns: CONTROL_PLANE_COLUMNS,
    }),
  ];
}
