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
  SELECTOR,
  TEMPLATE_METADATA,
  text,
  texts,
  time,
  VERSIONS,
  WIDE,
  whole,
} from './schema.ts';

const GROUP = { group: 'cluster.x-k8s.io', version: 'v1beta2' };
const PAUSED: ColumnFact = [
  'Paused',
  'string',
  conditionPath('Paused'),
  'Whether reconciling is paused',
  WIDE,
];
const OBSERVED: Record<string, JsonSchema> = {
  observedGeneration: long('Generation the controller has seen.'),
  deprecated: open('Fields of older versions.'),
};
const cidrs = (description: string): JsonSchema =>
  object(description, { cidrBlocks: texts('Address ranges.') }, ['cidrBlocks']);

function counts(description: string): JsonSchema {
  return object(description, { desiredReplicas: whole('Machines wanted.'), ...REPLICA_COUNTS });
}

const CLUSTER_SPEC = object('spec is the desired state.', {
  paused: flag('Stops every controller of this cluster from acting.'),
  clusterNetwork: object('Network of the workload cluster.', {
    apiServerPort: whole('Port of the API server.'),
    services: cidrs('Addresses of Services.'),
    pods: cidrs('Addresses of Pods.'),
    serviceDomain: text('Domain of Services.'),
  }),
  controlPlaneEndpoint: object('Where the API server of the workload cluster answers.', {
    host: text('Name or address.'),
    port: whole('Port.'),
  }),
  controlPlaneRef: REFERENCE('The object that provides the control plane.'),
  infrastructureRef: REFERENCE('The object that provides the infrastructure.'),
  topology: open('A topology managed by a ClusterClass.'),
  availabilityGates: list(
    'Further conditions the Available condition waits for.',
    object(
      'One gate.',
      {
        conditionType: text('Type of the condition.'),
        polarity: text('Which status is good.', ['Positive', 'Negative']),
      },
      ['conditionType'],
    ),
  ),
});

const CLUSTER_STATUS = object('What was observed.', {
  conditions: CONDITIONS,
  initialization: object('What happens once in the life of a cluster.', {
    infrastructureProvisioned: flag('The infrastructure is there.'),
    controlPlaneInitialized: flag('The control plane takes requests.'),
  }),
  controlPlane: counts('Counts of control plane Machines.'),
  workers: counts('Counts of worker Machines.'),
  failureDomains: list('Failure domains of the infrastructure.', open('One failure domain.')),
  phase: text('Where the cluster is in its life.', [
    'Pending',
    'Provisioning',
    'Provisioned',
    'Deleting',
    'Failed',
    'Unknown',
  ]),
  ...OBSERVED,
});

const DELETION = object('Limits of a deletion.', {
  nodeDrainTimeoutSeconds: whole('Seconds draining may take; 0 is no limit.'),
  nodeVolumeDetachTimeoutSeconds: whole('Seconds waiting for volumes may take; 0 is no limit.'),
  nodeDeletionTimeoutSeconds: whole('Seconds deleting the Node is tried.'),
});

const MACHINE_SPEC = object(
  'spec is the desired state.',
  {
    clusterName: text('Cluster the Machine belongs to.'),
    bootstrap: object('How the machine becomes a node.', {
      configRef: REFERENCE('The object that makes the bootstrap data.'),
      dataSecretName: text('Secret with the bootstrap data.'),
    }),
    infrastructureRef: REFERENCE('The object that makes the machine.'),
    version: text('Kubernetes version.'),
    providerID: text('Identity of the machine at its provider; equals that of its Node.'),
    failureDomain: text('Failure domain to put it into.'),
    minReadySeconds: whole('Seconds it must be ready to count as available.'),
    readinessGates: list(
      'Further conditions the Ready condition waits for.',
      object(
        'One gate.',
        {
          conditionType: text('Type of the condition.'),
          polarity: text('Which status is good.', ['Positive', 'Negative']),
        },
        ['conditionType'],
      ),
    ),
    deletion: DELETION,
    taints: list('Taints of the Node.', open('One taint.')),
  },
  ['bootstrap', 'clusterName', 'infrastructureRef'],
);

const MACHINE_STATUS = object('What was observed.', {
  conditions: CONDITIONS,
  initialization: object('What happens once in the life of a machine.', {
    infrastructureProvisioned: flag('The machine runs.'),
    bootstrapDataSecretCreated: flag('The bootstrap data is there.'),
  }),
  nodeRef: object('Its Node.', { name: text('Name of the Node.') }, ['name']),
  nodeInfo: open('What the Node says of itself.'),
  lastUpdated: time('When the phase last changed.'),
  failureDomain: text('Failure domain it is in.'),
  addresses: list(
    'Addresses of the machine.',
    object('One address.', { type: text('Kind of address.'), address: text('The address.') }, [
      'address',
      'type',
    ]),
  ),
  phase: text('Where the machine is in its life.', [
    'Pending',
    'Provisioning',
    'Provisioned',
    'Running',
    'Updating',
    'Deleting',
    'Deleted',
    'Failed',
    'Unknown',
  ]),
  certificatesExpiryDate: time('When its certificates expire.'),
  deletion: object('Where a deletion has got to.', {
    nodeDrainStartTime: time('When draining began.'),
    waitForNodeVolumeDetachStartTime: time('When waiting for volumes began.'),
    waitForPreDrainHookStartTime: time('When waiting for hooks before draining began.'),
    waitForPreTerminateHookStartTime: time('When waiting for hooks before termination began.'),
  }),
  ...OBSERVED,
});

const TEMPLATE = object('The Machines to make.', { metadata: TEMPLATE_METADATA, spec: MACHINE_SPEC }, [
  'spec',
]);
const ORDER = object('How Machines are chosen for deletion.', {
  order: text('Which goes first.', ['Random', 'Newest', 'Oldest']),
});
const NAMING = object('How Machines are named.', { template: text('Template of the name.') });

const SET_SPEC: Record<string, JsonSchema> = {
  clusterName: text('Cluster it belongs to.'),
  replicas: { ...whole('Machines wanted.') },
  selector: SELECTOR,
  template: TEMPLATE,
  deletion: ORDER,
  machineNaming: NAMING,
};
const SET_STATUS: Record<string, JsonSchema> = {
  conditions: CONDITIONS,
  selector: text('The selector as text.'),
  ...REPLICA_COUNTS,
  versions: VERSIONS,
  ...OBSERVED,
};
const SET_REQUIRED = ['clusterName', 'selector', 'template'];

const DEPLOYMENT_SPEC = object(
  'spec is the desired state.',
  {
    ...SET_SPEC,
    paused: flag('Stops rollouts.'),
    rollout: object('How a new template is rolled out.', {
      after: time('A rollout is wanted after this time.'),
      strategy: object(
        'The strategy.',
        {
          type: text('RollingUpdate or OnDelete.', ['RollingUpdate', 'OnDelete']),
          rollingUpdate: object('Limits of a rolling update.', {
            maxSurge: intOrPercent('Machines above the wanted number.'),
            maxUnavailable: intOrPercent('Machines below the wanted number.'),
          }),
        },
        ['type'],
      ),
    }),
    remediation: open('How unhealthy Machines are replaced.'),
  },
  SET_REQUIRED,
);

const setColumns = (phase: boolean): ColumnFact[] => [
  ['Cluster', 'string', '.spec.clusterName', 'Cluster'],
  ...(phase
    ? [['Available', 'string', conditionPath('Available'), 'Whether enough Machines are available'] as const]
    : []),
  ['Desired', 'integer', '.spec.replicas', 'Machines wanted'],
  ['Current', 'integer', '.status.replicas', 'Machines there are'],
  ['Ready', 'integer', '.status.readyReplicas', 'Machines whose Ready condition is true'],
  ['Available', 'integer', '.status.availableReplicas', 'Machines whose Available condition is true'],
  ['Up-to-date', 'integer', '.status.upToDateReplicas', 'Machines whose UpToDate condition is true'],
  PAUSED,
  ...(phase ? [['Phase', 'string', '.status.phase', 'Where it is in its life'] as const] : []),
  AGE,
  ['Version', 'string', '.spec.template.spec.version', 'Kubernetes version'],
];

const CLUSTER_COLUMNS: ColumnFact[] = [
  ['ClusterClass', 'string', '.spec.topology.classRef.name', 'ClusterClass, if it uses one'],
  ['Available', 'string', conditionPath('Available'), 'Whether all checks pass'],
  ['CP Desired', 'integer', '.status.controlPlane.desiredReplicas', 'Control plane Machines wanted'],
  ['CP Current', 'integer', '.status.controlPlane.replicas', 'Control plane Machines there are', WIDE],
  [
    'CP Ready',
    'integer',
    '.status.controlPlane.readyReplicas',
    'Control plane Machines that are ready',
    WIDE,
  ],
  [
    'CP Available',
    'integer',
    '.status.controlPlane.availableReplicas',
    'Control plane Machines that are available',
  ],
  [
    'CP Up-to-date',
    'integer',
    '.status.controlPlane.upToDateReplicas',
    'Control plane Machines that are up to date',
  ],
  ['W Desired', 'integer', '.status.workers.desiredReplicas', 'Worker Machines wanted'],
  ['W Current', 'integer', '.status.workers.replicas', 'Worker Machines there are', WIDE],
  ['W Ready', 'integer', '.status.workers.readyReplicas', 'Worker Machines that are ready', WIDE],
  ['W Available', 'integer', '.status.workers.availableReplicas', 'Worker Machines that are available'],
  ['W Up-to-date', 'integer', '.status.workers.upToDateReplicas', 'Worker Machines that are up to date'],
  PAUSED,
  ['Phase', 'string', '.status.phase', 'Where the cluster is in its life'],
  AGE,
  ['Version', 'string', '.spec.topology.version', 'Kubernetes version'],
];

const MACHINE_COLUMNS: ColumnFact[] = [
  ['Cluster', 'string', '.spec.clusterName', 'Cluster'],
  ['Node Name', 'string', '.status.nodeRef.name', 'Its Node'],
  ['Provider ID', 'string', '.spec.providerID', 'Identity at the provider', WIDE],
  ['Failure domain', 'string', '.status.failureDomain', 'Failure domain it is in'],
  ['Ready', 'string', conditionPath('Ready'), 'Whether it is ready'],
  ['Available', 'string', conditionPath('Available'), 'Whether it has been ready long enough'],
  ['Up-to-date', 'string', conditionPath('UpToDate'), 'Whether it is what its owner wants'],
  ['Internal-IP', 'string', '.status.addresses[?(@.type=="InternalIP")].address', 'Internal address', WIDE],
  ['External-IP', 'string', '.status.addresses[?(@.type=="ExternalIP")].address', 'External address', WIDE],
  ['OS-Image', 'string', '.status.nodeInfo.osImage', 'Operating system', WIDE],
  PAUSED,
  ['Phase', 'string', '.status.phase', 'Where it is in its life'],
  AGE,
  ['Version', 'string', '.spec.version', 'Kubernetes version'],
];

/** Models the types of sigs.k8s.io/cluster-api/api/core/v1beta2. */
export function coreDefinitions(): CustomResourceDefinition[] {
  return [
    definition({
      ...GROUP,
      kind: 'Cluster',
      plural: 'clusters',
      shortNames: ['cl'],
      description: 'Cluster is a workload cluster.',
      spec: CLUSTER_SPEC,
      status: CLUSTER_STATUS,
      columns: CLUSTER_COLUMNS,
    }),
    definition({
      ...GROUP,
      kind: 'Machine',
      plural: 'machines',
      shortNames: ['ma'],
      description: 'Machine is a machine that becomes a Node of a workload cluster.',
      spec: MACHINE_SPEC,
      status: MACHINE_STATUS,
      columns: MACHINE_COLUMNS,
    }),
    definition({
      ...GROUP,
      kind: 'MachineSet',
      plural: 'machinesets',
      shortNames: ['ms'],
      description: 'MachineSet keeps a number of equal Machines.',
      scale: true,
      spec: object('spec is the desired state.', SET_SPEC, SET_REQUIRED),
      status: object('What was observed.', SET_STATUS),
      columns: setColumns(false),
    }),
    definition({
      ...GROUP,
      kind: 'MachineDeployment',
      plural: 'machinedeployments',
      shortNames: ['md'],
      description: 'MachineDeployment keeps a number of equal Machines and rolls out changes.',
      scale: true,
      spec: DEPLOYMENT_SPEC,
      status: object('What was observed.', {
        ...SET_STATUS,
        phase: text('Where it is in its life.', ['ScalingUp', 'ScalingDown', 'Running', 'Failed', 'Unknown']),
      }),
      columns: setColumns(true),
    }),
  ];
}
