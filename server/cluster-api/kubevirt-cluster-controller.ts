import { generateKeyPairSync } from 'node:crypto';
import {
  cloneJson,
  configMaps,
  deployments,
  isAlreadyExists,
  objectKey,
  type Resource,
  roleBindings,
  roles,
  type Service,
  secrets,
  serviceAccounts,
  services,
} from '#server/kube';
import { clusterKeyOf } from './caches.ts';
import { dropFinalizer, find, remove, saveChanges, withFinalizer } from './changes.ts';
import { clusterSecret, encode } from './cluster-secrets.ts';
import { pausedFinding, report, summarize, words } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import type { Cluster } from './core-resources.ts';
import { type KubevirtCluster, kubevirtClusters } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { CLUSTER_NAME_LABEL, KUBEVIRT_CLUSTER_FINALIZER, MANAGER, ROLE_LABEL } from './vocabulary.ts';

const API_PORT = 6443;

/** Things somebody put beside the cluster that are to go with it carry this label (the cloud-controller-manager's). */
const EXTRA_SELECTOR = (cluster: string): string =>
  `${CLUSTER_NAME_LABEL}=${cluster},capk.cluster.x-k8s.io/template-kind=extra-resource`;
const EXTRA_KINDS: readonly Resource[] = [configMaps, serviceAccounts, deployments, roles, roleBindings];

/** An SSH key pair (ed25519): public in OpenSSH's one-line form, private as PEM. */
function createSshKeys(): { publicKey: string; privateKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
  const field = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)]);
  return {
    publicKey: `ssh-ed25519 ${blob.toString('base64')}`,
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function loadBalancer(cluster: Cluster, kubevirtCluster: KubevirtCluster): Service {
  const template = kubevirtCluster.spec.controlPlaneServiceTemplate;
  const name = cluster.metadata.name;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: `${name}-lb`,
      ...(kubevirtCluster.metadata.namespace ? { namespace: kubevirtCluster.metadata.namespace } : {}),
      labels: { ...template?.metadata?.labels, [CLUSTER_NAME_LABEL]: name },
      ...(template?.metadata?.annotations ? { annotations: template.metadata.annotations } : {}),
    },
    spec: {
      type: template?.spec?.type ?? 'ClusterIP',
      ports: [{ port: API_PORT, protocol: 'TCP', targetPort: API_PORT }],
      selector: { [ROLE_LABEL]: 'control-plane', [CLUSTER_NAME_LABEL]: name },
    },
  };
}

/** The address a Service of that type is reached at; undefined while it has none. */
function addressOf(service: Service): string | undefined {
  if (service.spec?.type === 'LoadBalancer') return service.status?.loadBalancer?.ingress?.[0]?.ip;
  return service.spec?.clusterIP || undefined;
}

/**
 * KubevirtCluster → Service `<cluster>-lb` and SSH keys; its address becomes the control plane endpoint.
 * Models controllers/kubevirtcluster_controller.go of cluster-api-provider-kubevirt.
 */
export function startKubevirtClusterController(context: Context): Running {
  const { client, caches, clock, log } = context;
  const loop = startLoop({
    name: 'kubevirtcluster',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (object: KubevirtCluster): void => loop.enqueue(objectKey(object));
  const ofCluster = (cluster: Cluster | undefined): void => {
    const ref = cluster?.spec.infrastructureRef;
    if (cluster && ref?.kind === 'KubevirtCluster')
      loop.enqueue(`${cluster.metadata.namespace ?? ''}/${ref.name}`);
  };
  const ofService = (service: Service): void => ofCluster(caches.clusters.get(clusterKeyOf(service)));
  const watches = [
    caches.kubevirtClusters.on({ added: enqueue, updated: (_, now) => enqueue(now) }),
    caches.clusters.on({
      added: ofCluster,
      updated: (old, now) => {
        if (old.spec.paused !== now.spec.paused) ofCluster(now);
      },
    }),
    caches.services.on({ added: ofService, updated: (_, now) => ofService(now), deleted: ofService }),
  ];

  const ensureService = async (cluster: Cluster, object: KubevirtCluster): Promise<Service> => {
    const present = caches.services.get(`${object.metadata.namespace ?? ''}/${cluster.metadata.name}-lb`);
    if (present) return present;
    try {
      return await client.create(services, loadBalancer(cluster, object), MANAGER);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return client.get(services, {
        namespace: object.metadata.namespace,
        name: `${cluster.metadata.name}-lb`,
      });
    }
  };

  const ensureSshKeys = async (cluster: Cluster, object: KubevirtCluster): Promise<void> => {
    if (object.spec.sshKeys?.dataSecretName) return;
    const name = `${object.metadata.name}-ssh-keys`;
    const { apiVersion, kind, metadata } = object;
    let secret = await find(client, secrets, metadata.namespace, name);
    if (!secret) {
      const keys = createSshKeys();
      const data = { pub: encode(keys.publicKey), key: encode(keys.privateKey) };
      secret = await client.create(
        secrets,
        clusterSecret(cluster, name, data, {
          apiVersion,
          kind,
          name: metadata.name,
          uid: metadata.uid ?? '',
        }),
        MANAGER,
      );
    }
    object.spec.sshKeys = {
      configRef: {
        apiVersion: 'v1',
        kind: 'Secret',
        name,
        ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
        ...(secret.metadata.uid ? { uid: secret.metadata.uid } : {}),
      },
      dataSecretName: name,
    };
  };

  const provide = async (cluster: Cluster, object: KubevirtCluster): Promise<void> => {
    const service = await ensureService(cluster, object);
    const host = object.spec.controlPlaneEndpoint?.host
      ? object.spec.controlPlaneEndpoint.host
      : addressOf(service);
    if (!host) {
      const missing =
        service.spec?.type === 'LoadBalancer'
          ? 'the load balancer external IP is not ready yet'
          : 'the load balancer service is not ready yet';
      report(object, clock.now(), {
        type: 'LoadBalancerAvailable',
        status: 'False',
        reason: 'LoadBalancerProvisioningFailed',
        message: missing,
      });
      return;
    }
    object.spec.controlPlaneEndpoint = { host, port: object.spec.controlPlaneEndpoint?.port ?? API_PORT };
    report(object, clock.now(), {
      type: 'LoadBalancerAvailable',
      status: 'True',
      reason: 'LoadBalancerAvailable',
    });
    await ensureSshKeys(cluster, object);
    object.status = { ...object.status, ready: true, initialization: { provisioned: true } };
  };

  const takeDown = async (cluster: Cluster, object: KubevirtCluster): Promise<void> => {
    const { namespace } = object.metadata;
    const service = await find(client, services, namespace, `${cluster.metadata.name}-lb`);
    if (service) await remove(client, services, service);
    report(object, clock.now(), { type: 'LoadBalancerAvailable', status: 'False', reason: 'Deleting' });
    for (const kind of EXTRA_KINDS) {
      const { items } = await client.list(kind, {
        namespace,
        labelSelector: EXTRA_SELECTOR(cluster.metadata.name),
      });
      for (const item of items) await remove(client, kind, item);
    }
    dropFinalizer(object, KUBEVIRT_CLUSTER_FINALIZER);
  };

  const reconcile = async (key: string): Promise<void> => {
    let before = caches.kubevirtClusters.get(key);
    const owner = before?.metadata.ownerReferences?.find((reference) => reference.kind === 'Cluster');
    const cluster = owner && caches.clusters.get(`${before?.metadata.namespace ?? ''}/${owner.name}`);
    if (!before || !cluster || pauses(cluster, before).length > 0) return;
    const leaving = before.metadata.deletionTimestamp !== undefined;
    if (leaving && !before.metadata.finalizers?.includes(KUBEVIRT_CLUSTER_FINALIZER)) return;
    if (!leaving) before = await withFinalizer(client, kubevirtClusters, before, KUBEVIRT_CLUSTER_FINALIZER);
    const object = cloneJson(before);
    object.status ??= { ready: false };
    if (leaving) await takeDown(cluster, object);
    else await provide(cluster, object);
    report(
      object,
      clock.now(),
      summarize(object, 'Ready', { of: ['LoadBalancerAvailable'], reasons: words('Ready') }),
      pausedFinding([]),
    );
    await saveChanges(client, kubevirtClusters, before, object);
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
