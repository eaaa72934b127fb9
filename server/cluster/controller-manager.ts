import type { ApiServer } from '#server/apiserver';
import { type Clock, createDisposables, type Ids, type Logger } from '#server/base';
import {
  type Client,
  type Controller,
  type ControllerContext,
  createInformerFactory,
  createInProcessClient,
} from '#server/client';
import {
  createCertificateApprovingController,
  createCertificateCleaner,
  createCertificateSigningController,
} from '#server/controllers/certificates';
import { createClusterRoleAggregationController } from '#server/controllers/cluster-role-aggregation';
import { createDaemonSetController } from '#server/controllers/daemon-set';
import { createDeploymentController } from '#server/controllers/deployment';
import { createDisruptionController } from '#server/controllers/disruption';
import { createEndpointSliceController } from '#server/controllers/endpoint-slice';
import { createEndpointsController } from '#server/controllers/endpoints';
import { createEventTtl } from '#server/controllers/event-ttl';
import { createGarbageCollector } from '#server/controllers/garbage-collector';
import { createNamespaceController } from '#server/controllers/namespace';
import { createNodeIpamController } from '#server/controllers/node-ipam';
import { createNodeLifecycleController } from '#server/controllers/node-lifecycle';
import { createPodGarbageCollector } from '#server/controllers/pod-garbage-collector';
import { createReplicaSetController } from '#server/controllers/replica-set';
import { createRootCaPublisher } from '#server/controllers/root-ca-publisher';
import { createServiceAccountController } from '#server/controllers/service-account';
import { createTokenCleaner } from '#server/controllers/token-cleaner';
import type { Authority } from '#server/pki';

/** What the command line of kube-controller-manager says, as far as it changes what runs here. */
export interface ControllerManagerSettings {
  /** `--cluster-cidr`: pod addresses, shared out to nodes. Undefined: `--allocate-node-cidrs=false`. */
  readonly clusterCidr: string | undefined;
  /** `--node-cidr-mask-size`. */
  readonly nodeCidrMaskSize: number;
  /** `--cluster-signing-…-file`: signs kubelets' client certificates. */
  readonly signing: Authority | undefined;
  /** `--root-ca-file`: published as ConfigMap kube-root-ca.crt. */
  readonly rootCaPem: string;
  /** `--controllers`. */
  readonly controllers: readonly string[];
}

export interface ControllerManagerOptions extends ControllerManagerSettings {
  server: ApiServer;
  clock: Clock;
  ids: Ids;
  log: Logger;
}

type Create = (context: ControllerContext, settings: ControllerManagerSettings) => Controller | undefined;

/**
 * The controllers of kube-controller-manager: name (for `--controllers`), service account, and how each is made. A new
 * one is a folder and a row. Models kubernetes/cmd/kube-controller-manager/app/controller_descriptor.go.
 */
const CONTROLLERS: readonly { name: string; account: string; create: Create }[] = [
  { name: 'namespace-controller', account: 'namespace-controller', create: createNamespaceController },
  {
    name: 'serviceaccount-controller',
    account: 'service-account-controller',
    create: createServiceAccountController,
  },
  {
    name: 'root-ca-certificate-publisher-controller',
    account: 'root-ca-cert-publisher',
    create: (context, { rootCaPem }) => createRootCaPublisher(context, { rootCaPem }),
  },
  {
    name: 'garbage-collector-controller',
    account: 'generic-garbage-collector',
    create: createGarbageCollector,
  },
  { name: 'deployment-controller', account: 'deployment-controller', create: createDeploymentController },
  { name: 'replicaset-controller', account: 'replicaset-controller', create: createReplicaSetController },
  { name: 'daemonset-controller', account: 'daemon-set-controller', create: createDaemonSetController },
  { name: 'disruption-controller', account: 'disruption-controller', create: createDisruptionController },
  { name: 'endpoints-controller', account: 'endpoint-controller', create: createEndpointsController },
  {
    name: 'endpointslice-controller',
    account: 'endpointslice-controller',
    create: createEndpointSliceController,
  },
  {
    name: 'pod-garbage-collector-controller',
    account: 'pod-garbage-collector',
    create: createPodGarbageCollector,
  },
  {
    name: 'node-ipam-controller',
    account: 'node-controller',
    create: (context, { clusterCidr, nodeCidrMaskSize }) =>
      clusterCidr === undefined
        ? undefined
        : createNodeIpamController(context, { clusterCidr, nodeCidrMaskSize }),
  },
  { name: 'node-lifecycle-controller', account: 'node-controller', create: createNodeLifecycleController },
  {
    name: 'certificatesigningrequest-signing-controller',
    account: 'certificate-controller',
    create: (context, { signing }) =>
      signing ? createCertificateSigningController(context, { signing }) : undefined,
  },
  {
    name: 'certificatesigningrequest-approving-controller',
    account: 'certificate-controller',
    create: createCertificateApprovingController,
  },
  {
    name: 'certificatesigningrequest-cleaner-controller',
    account: 'certificate-controller',
    create: createCertificateCleaner,
  },
  {
    name: 'clusterrole-aggregation-controller',
    account: 'clusterrole-aggregation-controller',
    create: createClusterRoleAggregationController,
  },
  { name: 'token-cleaner-controller', account: 'token-cleaner', create: createTokenCleaner },
  { name: 'event-ttl-controller', account: 'event-ttl-controller', create: createEventTtl },
];

/**
 * Starts the controllers against an API server of this process. Each writes under its own service account
 * (`--use-service-account-credentials`), all read through shared informers of the manager's identity.
 * Stop with `dispose`.
 */
export function startControllerManager(options: ControllerManagerOptions): { dispose(): Promise<void> } {
  const { server, clock, ids, log } = options;
  const running = createDisposables();
  const clientOf = (user: string, groups: readonly string[]): Client =>
    createInProcessClient({
      backend: server.backend,
      user: { name: user, groups: ['system:authenticated', ...groups] },
      userAgent: 'kube-controller-manager/v1.36.3 (linux/arm64) kubernetes/0f29094',
    });
  const informers = createInformerFactory({
    client: clientOf('system:kube-controller-manager', []),
    clock,
    log,
  });
  running.defer(() => informers.stop());
  for (const { name, account, create } of CONTROLLERS) {
    if (!isEnabled(name, options.controllers)) continue;
    const client =
      account === 'event-ttl-controller'
        ? clientOf('system:kube-controller-manager', ['system:masters'])
        : clientOf(`system:serviceaccount:kube-system:${account}`, [
            'system:serviceaccounts',
            'system:serviceaccounts:kube-system',
          ]);
    const controller = create(
      { client, informers, clock, ids, log: log.child({ controller: name }) },
      options,
    );
    if (!controller) continue;
    controller.start();
    running.defer(() => controller.stop());
  }
  informers.start();
  return running;
}

/** Models k8s.io/controller-manager/app.IsControllerEnabled: a name wins over `*`, a minus switches off. */
function isEnabled(name: string, controllers: readonly string[]): boolean {
  if (controllers.includes(name)) return true;
  if (controllers.includes(`-${name}`)) return false;
  return controllers.length === 0 || controllers.includes('*');
}
