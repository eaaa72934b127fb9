import type { CustomResourceDefinition, JsonSchema } from '#server/kube';
import {
  CONDITIONS,
  definition,
  flag,
  list,
  object,
  open,
  TEMPLATE_METADATA,
  text,
  whole,
} from './schema.ts';

const GROUP = { group: 'infrastructure.cluster.x-k8s.io', version: 'v1alpha1' };
const METADATA: JsonSchema = {
  type: 'object',
  nullable: true,
  description: 'Namespace, labels and annotations of what is made.',
  'x-kubernetes-preserve-unknown-fields': true,
};
const READY: JsonSchema = { ...flag('It is ready.'), default: false };
const INITIALIZATION = object('What happens once.', { provisioned: flag('The infrastructure is there.') });

const MACHINE_SPEC = object('spec is the desired state.', {
  virtualMachineTemplate: object('The VirtualMachine to make.', {
    metadata: METADATA,
    spec: open('Spec of a kubevirt.io/v1 VirtualMachine.'),
  }),
  providerID: text('Identity of the machine: kubevirt:// and its name.'),
  virtualMachineBootstrapCheck: object('How it is found out that bootstrapping succeeded.', {
    checkStrategy: {
      ...text('ssh reads a file in the guest; none believes it.', ['none', 'ssh']),
      default: 'ssh',
    },
  }),
  infraClusterSecretRef: open('Secret with the kubeconfig of another cluster for the machines.'),
});

/** Models the types of sigs.k8s.io/cluster-api-provider-kubevirt/api/v1alpha1. */
export function kubevirtDefinitions(): CustomResourceDefinition[] {
  return [
    definition({
      ...GROUP,
      kind: 'KubevirtCluster',
      plural: 'kubevirtclusters',
      description: 'KubevirtCluster is the infrastructure of a cluster on KubeVirt.',
      spec: object('spec is the desired state.', {
        controlPlaneEndpoint: object(
          'Where the API server answers.',
          { host: text('Name or address.'), port: whole('Port.') },
          ['host', 'port'],
        ),
        controlPlaneServiceTemplate: object('The Service in front of the control plane.', {
          metadata: METADATA,
          spec: object('What the Service is.', { type: text('Type of the Service.') }),
        }),
        sshKeys: object('Keys to reach the machines.', {
          configRef: open('The Secret.'),
          dataSecretName: text('Name of the Secret.'),
        }),
        infraClusterSecretRef: open('Secret with the kubeconfig of another cluster for the machines.'),
      }),
      status: object(
        'What was observed.',
        {
          ready: READY,
          initialization: INITIALIZATION,
          failureDomains: list('Failure domains.', open('One failure domain.')),
          conditions: CONDITIONS,
        },
        ['ready'],
      ),
    }),
    definition({
      ...GROUP,
      kind: 'KubevirtMachine',
      plural: 'kubevirtmachines',
      description: 'KubevirtMachine is the VirtualMachine of one Machine.',
      spec: MACHINE_SPEC,
      status: object(
        'What was observed.',
        {
          ready: READY,
          initialization: INITIALIZATION,
          loadBalancerConfigured: flag('It is behind the load balancer.'),
          addresses: list(
            'Addresses of the machine.',
            object('One address.', { type: text('Kind of address.'), address: text('The address.') }, [
              'address',
              'type',
            ]),
          ),
          conditions: CONDITIONS,
          nodeupdated: flag('The providerID was written onto the Node by this provider.'),
          failureReason: text('Why it cannot recover, in one word.'),
          failureMessage: text('Why it cannot recover.'),
        },
        ['ready'],
      ),
      columns: [
        ['Age', 'date', '.metadata.creationTimestamp'],
        ['Ready', 'boolean', '.status.ready', 'Is machine ready'],
      ],
    }),
    definition({
      ...GROUP,
      kind: 'KubevirtMachineTemplate',
      plural: 'kubevirtmachinetemplates',
      description: 'KubevirtMachineTemplate is copied into a KubevirtMachine for each Machine.',
      spec: object(
        'The template.',
        {
          template: object(
            'The KubevirtMachines to make.',
            { metadata: TEMPLATE_METADATA, spec: MACHINE_SPEC },
            ['spec'],
          ),
        },
        ['template'],
      ),
      status: object('What was observed.', {
        capacity: open('What a machine offers, for scaling from zero.'),
      }),
    }),
  ];
}
