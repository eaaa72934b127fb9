import type { CustomResourceDefinition, CustomResourceDefinitionVersion, JsonSchema } from '#server/kube';

const text = (description: string): JsonSchema => ({ type: 'string', description });
const flag = (description: string): JsonSchema => ({ type: 'boolean', description });
const whole = (description: string): JsonSchema => ({ type: 'integer', description });
const object = (
  description: string,
  properties: Record<string, JsonSchema>,
  required?: string[],
): JsonSchema => ({ type: 'object', description, properties, ...(required ? { required } : {}) });
const list = (description: string, items: JsonSchema): JsonSchema => ({ type: 'array', description, items });
const open = (description: string): JsonSchema => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
});
const quantity = (description: string): JsonSchema => ({ description, 'x-kubernetes-int-or-string': true });

const CONDITIONS = list(
  'What was observed of the object, one entry for each aspect.',
  object(
    'One aspect.',
    {
      type: text('Name of the aspect.'),
      status: text('True, False or Unknown.'),
      reason: text('One word for programs.'),
      message: text('A sentence for people.'),
      lastProbeTime: {
        type: 'string',
        format: 'date-time',
        nullable: true,
        description: 'When it was last looked at.',
      },
      lastTransitionTime: {
        type: 'string',
        format: 'date-time',
        nullable: true,
        description: 'When the status last changed.',
      },
    },
    ['type', 'status'],
  ),
);

const DOMAIN: JsonSchema = object(
  'The virtual hardware.',
  {
    cpu: object('Virtual CPUs.', {
      cores: whole('Cores of each socket.'),
      sockets: whole('Sockets.'),
      threads: whole('Threads of each core.'),
      model: text('CPU model.'),
    }),
    memory: object('Memory of the guest.', {
      guest: quantity('What the guest sees.'),
      maxGuest: quantity('What it may grow to.'),
      hugepages: open('Huge pages.'),
    }),
    resources: open('Requests and limits of the virt-launcher pod.'),
    machine: object('Machine type.', { type: text('QEMU machine type.') }),
    firmware: open('UUID, serial number and boot loader.'),
    features: open('ACPI, APIC and the like.'),
    clock: open('Guest clock.'),
    chassis: open('SMBIOS chassis.'),
    ioThreadsPolicy: text('How disks share I/O threads.'),
    launchSecurity: open('Confidential computing.'),
    devices: {
      ...open('Disks, network interfaces and other devices.'),
      properties: {
        disks: list('Disks; each names a volume.', open('One disk.')),
        interfaces: list('Network interfaces; each names a network.', open('One interface.')),
        networkInterfaceMultiqueue: flag('One queue for each virtual CPU.'),
      },
    },
  },
  ['devices'],
);

const INSTANCE_SPEC: JsonSchema = {
  ...object(
    'How the machine is to run.',
    {
      domain: DOMAIN,
      volumes: list('What the disks hold.', {
        ...open('One volume.'),
        properties: { name: text('Name the disk refers to.') },
        required: ['name'],
      }),
      networks: list('Networks the interfaces attach to.', {
        ...open('One network.'),
        properties: { name: text('Name the interface refers to.') },
        required: ['name'],
      }),
      terminationGracePeriodSeconds: {
        type: 'integer',
        format: 'int64',
        description: 'Seconds a guest gets to shut down.',
      },
      evictionStrategy: text(
        'What happens when the node is drained: None, LiveMigrate, LiveMigrateIfPossible or External.',
      ),
      hostname: text('Host name of the guest; the name of the machine when left out.'),
      subdomain: text('Subdomain of the pod.'),
      architecture: text('CPU architecture.'),
      nodeSelector: {
        type: 'object',
        description: 'Labels the node must have.',
        additionalProperties: { type: 'string' },
      },
      tolerations: list('Taints to put up with.', open('One toleration.')),
      affinity: open('Scheduling preferences.'),
      priorityClassName: text('Priority class of the pod.'),
      schedulerName: text('Scheduler of the pod.'),
    },
    ['domain'],
  ),
  'x-kubernetes-preserve-unknown-fields': true,
};

const METADATA: JsonSchema = {
  type: 'object',
  nullable: true,
  description: 'Labels and annotations of what is made from the template.',
  'x-kubernetes-preserve-unknown-fields': true,
};

const VM_SCHEMA: JsonSchema = {
  type: 'object',
  description:
    'VirtualMachine keeps a machine defined whether it runs or not, and starts and stops its VirtualMachineInstance.',
  required: ['spec'],
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: object(
      'spec is the desired state.',
      {
        runStrategy: text(
          'When the machine runs: Always, RerunOnFailure, Manual, Halted or Once. Excludes running.',
        ),
        running: flag('Older form of runStrategy: true is Always, false is Halted.'),
        template: object('The VirtualMachineInstance to make.', { metadata: METADATA, spec: INSTANCE_SPEC }, [
          'spec',
        ]),
        dataVolumeTemplates: list('Data volumes made together with the machine.', open('One data volume.')),
        instancetype: open('Instance type to take CPUs and memory from.'),
        preference: open('Preferences to take defaults from.'),
      },
      ['template'],
    ),
    status: {
      ...object('What was observed.', {
        created: flag('Its VirtualMachineInstance exists.'),
        ready: flag('Its VirtualMachineInstance is ready.'),
        printableStatus: { ...text('The state in one word.'), default: 'Stopped' },
        runStrategy: text('The run strategy last acted on.'),
        conditions: CONDITIONS,
        stateChangeRequests: list('Starts and stops that were asked for.', open('One request.')),
        startFailure: open('Starts that failed one after the other.'),
        observedGeneration: {
          type: 'integer',
          format: 'int64',
          description: 'The generation the running machine was made from.',
        },
        desiredGeneration: { type: 'integer', format: 'int64', description: 'The generation of the wish.' },
      }),
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
};

const VMI_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'VirtualMachineInstance is one run of a machine.',
  required: ['spec'],
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: INSTANCE_SPEC,
    status: {
      ...object('What was observed.', {
        phase: text('Pending, Scheduling, Scheduled, Running, Succeeded, Failed or Unknown.'),
        nodeName: text('Node the machine runs on.'),
        reason: text('Why it is in this state.'),
        activePods: {
          type: 'object',
          description: 'UIDs of its pods and their nodes.',
          additionalProperties: { type: 'string' },
        },
        conditions: CONDITIONS,
        interfaces: list(
          'Network interfaces as seen from outside and by the guest agent.',
          object('One interface.', {
            name: text('Name in the spec.'),
            ipAddress: text('First address.'),
            ipAddresses: list('All addresses.', { type: 'string' }),
            mac: text('Hardware address.'),
            interfaceName: text('Name in the guest.'),
            podInterfaceName: text('Name in the pod.'),
            infoSource: text('Who reported it.'),
            queueCount: whole('Number of queues.'),
          }),
        ),
        guestOSInfo: open('What the guest agent says of the operating system.'),
        phaseTransitionTimestamps: list('When each phase was entered.', open('One phase.')),
        launcherContainerImageVersion: text('Image of the virt-launcher.'),
      }),
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
};

type Columns = NonNullable<CustomResourceDefinitionVersion['additionalPrinterColumns']>;

const VM_COLUMNS: Columns = [
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  {
    name: 'Status',
    type: 'string',
    description: 'Human Readable Status',
    jsonPath: '.status.printableStatus',
  },
  { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
];

const VMI_COLUMNS: Columns = [
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
  { name: 'IP', type: 'string', jsonPath: '.status.interfaces[0].ipAddress' },
  { name: 'NodeName', type: 'string', jsonPath: '.status.nodeName' },
  { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
  {
    name: 'Live-Migratable',
    type: 'string',
    jsonPath: ".status.conditions[?(@.type=='LiveMigratable')].status",
    priority: 1,
  },
  { name: 'Paused', type: 'string', jsonPath: ".status.conditions[?(@.type=='Paused')].status", priority: 1 },
];

function definition(
  kind: string,
  shortNames: string[],
  schema: JsonSchema,
  columns: Columns,
  status: boolean,
): CustomResourceDefinition {
  const singular = kind.toLowerCase();
  const version = (name: string, storage: boolean): CustomResourceDefinitionVersion => ({
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: schema },
    additionalPrinterColumns: columns,
    ...(status ? { subresources: { status: {} } } : {}),
  });
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.kubevirt.io`, labels: { 'kubevirt.io': '' } },
    spec: {
      group: 'kubevirt.io',
      scope: 'Namespaced',
      names: {
        plural: `${singular}s`,
        singular,
        kind,
        listKind: `${kind}List`,
        shortNames,
        categories: ['all'],
      },
      versions: [version('v1', true), version('v1alpha3', false)],
      conversion: { strategy: 'None' },
    },
  };
}

/**
 * The CustomResourceDefinitions of KubeVirt's VirtualMachine (status subresource) and VirtualMachineInstance (none, as
 * upstream). Models kubevirt pkg/virt-operator/resource/generate/components/crds.go.
 */
export function kubeVirtDefinitions(): CustomResourceDefinition[] {
  return [
    definition('VirtualMachine', ['vm', 'vms'], VM_SCHEMA, VM_COLUMNS, true),
    definition('VirtualMachineInstance', ['vmi', 'vmis'], VMI_SCHEMA, VMI_COLUMNS, false),
  ];
}
