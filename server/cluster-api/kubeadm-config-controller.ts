import { ConnectionError } from '#server/client';
import { cloneJson, controllerReference, isAlreadyExists, objectKey, secrets } from '#server/kube';
import { certificateFingerprint } from '#server/pki';
import { createToken, refreshToken, TOKEN_CHECK } from './bootstrap-token.ts';
import { BY_CLUSTER } from './caches.ts';
import { find, saveChanges } from './changes.ts';
import { type Bootstrap, renderCloudConfig } from './cloud-config.ts';
import {
  type ClusterCertificates,
  clusterSecret,
  decode,
  encode,
  lookUpCertificates,
} from './cluster-secrets.ts';
import { isTrue, pausedFinding, report, summarize, words } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import type { Cluster, Machine } from './core-resources.ts';
import { lockInit, unlockInit } from './init-lock.ts';
import {
  clusterConfigurationYaml,
  initConfigurationYaml,
  joinConfigurationYaml,
} from './kubeadm-documents.ts';
import { type BootstrapFile, type KubeadmConfig, kubeadmConfigs } from './kubeadm-resources.ts';
import { startLoop } from './loop.ts';
import { CLUSTER_SECRET_TYPE, CONTROL_PLANE_LABEL, MANAGER } from './vocabulary.ts';

/** How long a reconcile that waits for another machine waits at most without an event. */
const WAIT = 30_000;

interface Scope {
  /** As it was read, with what was written since: what the next write is compared with. */
  base: KubeadmConfig;
  config: KubeadmConfig;
  machine: Machine;
  cluster: Cluster;
}

type Outcome = { requeueAfter: number } | undefined;

/**
 * KubeadmConfig → bootstrap Secret: the user data with which a machine runs `kubeadm init` or `kubeadm join`.
 * Models bootstrap/kubeadm/reconcilers/kubeadmconfig.
 */
export function startKubeadmConfigController(context: Context): Running {
  const { client, caches, workloads, clock, ids, log } = context;
  const loop = startLoop({
    name: 'kubeadmconfig',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (config: KubeadmConfig): void => loop.enqueue(objectKey(config));
  const watches = [
    caches.configs.on({ added: enqueue, updated: (_, config) => enqueue(config) }),
    caches.machines.on({ added: ofMachine, updated: (_, machine) => ofMachine(machine) }),
    caches.clusters.on({
      updated: (old, cluster) => {
        const was = old.status?.initialization;
        const is = cluster.status?.initialization;
        const moved =
          was?.infrastructureProvisioned !== is?.infrastructureProvisioned ||
          was?.controlPlaneInitialized !== is?.controlPlaneInitialized ||
          isTrue(old, 'ControlPlaneInitialized') !== isTrue(cluster, 'ControlPlaneInitialized');
        if (moved || old.spec.paused !== cluster.spec.paused)
          for (const config of caches.configs.byIndex(BY_CLUSTER, objectKey(cluster))) enqueue(config);
      },
    }),
  ];

  function ofMachine(machine: Machine): void {
    const ref = machine.spec.bootstrap.configRef;
    if (ref?.kind === 'KubeadmConfig' && !machine.spec.bootstrap.dataSecretName)
      loop.enqueue(`${machine.metadata.namespace ?? ''}/${ref.name}`);
  }

  const ownerOf = (config: KubeadmConfig): Machine | undefined => {
    const owner = config.metadata.ownerReferences?.find((reference) => reference.kind === 'Machine');
    const machine = owner && caches.machines.get(`${config.metadata.namespace ?? ''}/${owner.name}`);
    return machine?.metadata.uid === owner?.uid ? machine : undefined;
  };

  const resolveFiles = async (config: KubeadmConfig): Promise<BootstrapFile[]> =>
    Promise.all(
      (config.spec.files ?? []).map(async (file) => {
        if (!file.contentFrom) return file;
        const { contentFrom, ...rest } = file;
        const secret = await client.get(secrets, {
          namespace: config.metadata.namespace,
          name: contentFrom.secret.name,
        });
        return { ...rest, content: decode(secret.data?.[contentFrom.secret.key]) };
      }),
    );

  const store = async ({ config, cluster }: Scope, userData: string): Promise<void> => {
    const data = { value: encode(userData), format: encode(config.spec.format ?? 'cloud-config') };
    const secret = clusterSecret(cluster, config.metadata.name, data, controllerReference(config));
    try {
      await client.create(secrets, secret, MANAGER);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const present = await client.get(secrets, {
        namespace: config.metadata.namespace,
        name: config.metadata.name,
      });
      await client.update(secrets, { ...present, data, type: CLUSTER_SECRET_TYPE }, MANAGER);
    }
  };

  const finish = async (scope: Scope, bootstrap: Omit<Bootstrap, 'spec' | 'files'>): Promise<void> => {
    const { config } = scope;
    const files = await resolveFiles(config);
    await store(scope, renderCloudConfig({ spec: config.spec, files, ...bootstrap }));
    config.status = {
      ...config.status,
      dataSecretName: config.metadata.name,
      initialization: { dataSecretCreated: true },
    };
    report(config, clock.now(), { type: 'DataSecretAvailable', status: 'True', reason: 'Available' });
  };

  const waiting = (config: KubeadmConfig, message: string): void =>
    report(config, clock.now(), {
      type: 'DataSecretAvailable',
      status: 'False',
      reason: 'NotAvailable',
      message,
    });

  const certificatesOf = async ({ config, cluster }: Scope): Promise<ClusterCertificates | undefined> => {
    const certificates = await lookUpCertificates(client, cluster);
    report(
      config,
      clock.now(),
      certificates
        ? { type: 'CertificatesAvailable', status: 'True', reason: 'Available' }
        : {
            type: 'CertificatesAvailable',
            status: 'Unknown',
            reason: 'InternalError',
            message: 'Please check controller logs for errors',
          },
    );
    return certificates;
  };

  const initialize = async (scope: Scope): Promise<Outcome> => {
    const { config, cluster, machine } = scope;
    if (
      machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined ||
      (!config.spec.initConfiguration && config.spec.joinConfiguration)
    ) {
      waiting(config, 'Waiting for Cluster control plane to be initialized');
      return undefined;
    }
    if (!(await lockInit(client, cluster, machine))) return { requeueAfter: WAIT };
    const certificates = await certificatesOf(scope);
    if (!certificates) return { requeueAfter: WAIT };
    const documents = [
      clusterConfigurationYaml(config.spec.clusterConfiguration, cluster, machine),
      initConfigurationYaml(config.spec.initConfiguration),
    ];
    await finish(scope, {
      command: 'init',
      configPath: '/run/kubeadm/kubeadm.yaml',
      configuration: documents.join('---\n'),
      certificates,
    });
    return undefined;
  };

  /** Fills in how the control plane is found; the token is kept in the spec, so that it is made once. */
  const discover = async ({ config, cluster }: Scope, ca: string): Promise<void> => {
    const join = (config.spec.joinConfiguration ??= {});
    if (join.discovery?.file) return;
    const found = ((join.discovery ??= {}).bootstrapToken ??= {});
    if (!found.caCertHashes?.length) found.caCertHashes = [`sha256:${certificateFingerprint(ca)}`];
    const { host = '', port = 6443 } = cluster.spec.controlPlaneEndpoint ?? {};
    found.apiServerEndpoint ??= `${host}:${port}`;
    found.token ??= await workloads.attempt(objectKey(cluster), (workload) =>
      createToken(workload, clock, ids),
    );
  };

  const joinCluster = async (scope: Scope): Promise<Outcome> => {
    const { config, cluster, machine } = scope;
    await unlockInit(client, cluster);
    const certificates = await certificatesOf(scope);
    if (!certificates) return { requeueAfter: WAIT };
    const before = scope.config.spec.joinConfiguration?.discovery?.bootstrapToken?.token;
    await discover(scope, certificates.ca.certPem);
    // The token is remembered before it is used: whoever comes after a crash uses the same.
    if (before !== config.spec.joinConfiguration?.discovery?.bootstrapToken?.token) {
      await saveChanges(client, kubeadmConfigs, scope.base, config);
      scope.base = cloneJson(config);
    }
    const controlPlane = machine.metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined;
    await finish(scope, {
      command: 'join',
      configPath: '/run/kubeadm/kubeadm-join-config.yaml',
      configuration: joinConfigurationYaml(config.spec.joinConfiguration ?? {}, controlPlane),
      ...(controlPlane ? { certificates } : {}),
    });
    return { requeueAfter: TOKEN_CHECK };
  };

  /** A token must not expire before the machine has joined with it. */
  const lookAfterToken = async ({ config, machine, cluster }: Scope): Promise<Outcome> => {
    const token = config.spec.joinConfiguration?.discovery?.bootstrapToken?.token;
    if (!token || machine.status?.nodeRef || machine.metadata.deletionTimestamp !== undefined)
      return undefined;
    await workloads.attempt(objectKey(cluster), (workload) => refreshToken(workload, token, clock));
    return { requeueAfter: TOKEN_CHECK };
  };

  const advance = async (scope: Scope): Promise<Outcome> => {
    const { config, cluster, machine } = scope;
    if (!cluster.status?.initialization?.infrastructureProvisioned) {
      waiting(config, 'Waiting for Cluster status.infrastructureReady to be true');
      return undefined;
    }
    if (config.status?.initialization?.dataSecretCreated) return lookAfterToken(scope);
    if (machine.spec.bootstrap.dataSecretName) {
      config.status = {
        ...config.status,
        dataSecretName: machine.spec.bootstrap.dataSecretName,
        initialization: { dataSecretCreated: true },
      };
      report(
        config,
        clock.now(),
        { type: 'DataSecretAvailable', status: 'True', reason: 'Available' },
        { type: 'CertificatesAvailable', status: 'True', reason: 'Available' },
      );
      return undefined;
    }
    // The data may have been stored by an earlier pass that did not get to report it.
    const stored = await find(client, secrets, config.metadata.namespace, config.metadata.name);
    if (
      stored?.metadata.ownerReferences?.some((owner) => owner.uid === config.metadata.uid) &&
      stored.data?.['value']
    ) {
      await certificatesOf(scope);
      config.status = {
        ...config.status,
        dataSecretName: config.metadata.name,
        initialization: { dataSecretCreated: true },
      };
      report(config, clock.now(), { type: 'DataSecretAvailable', status: 'True', reason: 'Available' });
      return undefined;
    }
    return isTrue(cluster, 'ControlPlaneInitialized') ? joinCluster(scope) : initialize(scope);
  };

  const reconcile = async (key: string): Promise<Outcome> => {
    const before = caches.configs.get(key);
    if (!before || before.metadata.deletionTimestamp !== undefined) return undefined;
    const machine = ownerOf(before);
    const cluster =
      machine && caches.clusters.get(`${machine.metadata.namespace ?? ''}/${machine.spec.clusterName}`);
    if (!machine || !cluster) return undefined;
    const config = cloneJson(before);
    const scope: Scope = { base: before, config, machine, cluster };
    const paused = pauses(cluster, config);
    let outcome: Outcome;
    let failure: unknown;
    if (paused.length === 0) {
      try {
        outcome = await advance(scope);
      } catch (error) {
        failure = error;
        if (!(error instanceof ConnectionError)) throw error;
      }
      report(
        config,
        clock.now(),
        summarize(config, 'Ready', {
          of: ['DataSecretAvailable', 'CertificatesAvailable'],
          optional: ['CertificatesAvailable'],
          reasons: words('Ready'),
        }),
      );
    }
    report(config, clock.now(), pausedFinding(paused));
    (config.status ??= {}).observedGeneration = before.metadata.generation ?? 1;
    await saveChanges(client, kubeadmConfigs, scope.base, config);
    if (failure) throw failure as Error;
    return outcome;
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
