import { type VirtualMachineInstance, virtualMachines } from '#server/clouds/kubevirt';
import {
  cloneJson,
  deepEqual,
  isAlreadyExists,
  type KubeObject,
  nodes,
  objectKey,
  secrets,
} from '#server/kube';
import { BY_CLUSTER } from './caches.ts';
import { dropFinalizer, find, remove, saveChanges, withFinalizer } from './changes.ts';
import { withCapkUser } from './cloud-config.ts';
import { decode, encode } from './cluster-secrets.ts';
import { isTrue, pausedFinding, report, summarize, words } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import type { Cluster, Machine } from './core-resources.ts';
import { isReady, notReady, reportProvisioned, terminalReason } from './kubevirt-machine-status.ts';
import { type KubevirtCluster, type KubevirtMachine, kubevirtMachines } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { machineVm, userDataName, vmNamespace } from './machine-vm.ts';
import {
  CLUSTER_SECRET_TYPE,
  CONTROL_PLANE_LABEL,
  KUBEVIRT_MACHINE_FINALIZER,
  KUBEVIRT_MACHINE_NAME_LABEL,
  KUBEVIRT_MACHINE_NAMESPACE_LABEL,
  MANAGER,
  PATCH_PROVIDER_ID_ANNOTATION,
  SENTINEL_CONTENT,
  SENTINEL_DIRECTORY,
  SENTINEL_FILE,
} from './vocabulary.ts';

/** Upstream looks again after these, milliseconds; events come first where there are any. */
const BOOTSTRAP_CHECK = 10_000;
const NODE_CHECK = 10_000;

type Outcome = { requeueAfter: number } | undefined;

interface Scope {
  /** As it was read. */
  base: KubevirtMachine;
  object: KubevirtMachine;
  machine: Machine;
  cluster: Cluster;
  kubevirtCluster: KubevirtCluster;
}

/**
 * KubevirtMachine → user data Secret → VirtualMachine; reports when the guest has bootstrapped. Models
 * controllers/kubevirtmachine_controller.go of cluster-api-provider-kubevirt (external infrastructure clusters left out).
 */
export function startKubevirtMachineController(context: Context): Running {
  const { client, caches, workloads, guests, clock, log } = context;
  const loop = startLoop({
    name: 'kubevirtmachine',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (object: KubeObject): void => loop.enqueue(objectKey(object));
  const ofMachine = (machine: Machine): void => {
    const ref = machine.spec.infrastructureRef;
    if (ref.kind === 'KubevirtMachine') loop.enqueue(`${machine.metadata.namespace ?? ''}/${ref.name}`);
  };
  const ofVm = (vm: KubeObject): void => {
    const { labels } = vm.metadata;
    loop.enqueue(
      `${labels?.[KUBEVIRT_MACHINE_NAMESPACE_LABEL] ?? ''}/${labels?.[KUBEVIRT_MACHINE_NAME_LABEL] ?? ''}`,
    );
  };
  const ofCluster = (key: string): void => {
    for (const object of caches.kubevirtMachines.byIndex(BY_CLUSTER, key)) enqueue(object);
  };
  const watches = [
    caches.kubevirtMachines.on({
      added: enqueue,
      updated: (_, now) => enqueue(now),
      deleted: (object) => stopLooking(objectKey(object)),
    }),
    caches.machines.on({ added: ofMachine, updated: (_, now) => ofMachine(now) }),
    caches.virtualMachines.on({ added: ofVm, updated: (_, now) => ofVm(now), deleted: ofVm }),
    caches.instances.on({ added: ofVm, updated: (_, now) => ofVm(now), deleted: ofVm }),
    caches.clusters.on({
      updated: (old, now) => {
        if (
          old.spec.paused !== now.spec.paused ||
          isTrue(old, 'InfrastructureReady') !== isTrue(now, 'InfrastructureReady') ||
          isTrue(old, 'ControlPlaneInitialized') !== isTrue(now, 'ControlPlaneInitialized')
        )
          ofCluster(objectKey(now));
      },
    }),
    caches.kubevirtClusters.on({
      updated: (old, now) => {
        const changed =
          !deepEqual(old.spec, now.spec) || !deepEqual(old.metadata.annotations, now.metadata.annotations);
        for (const cluster of changed ? caches.clusters.byIndex('infrastructure', objectKey(now)) : [])
          ofCluster(objectKey(cluster));
      },
    }),
  ];

  // Guests that were asked to tell of their sentinel file: key of the KubevirtMachine → how to stop.
  const looking = new Map<string, { uid: string; stop(): void }>();
  function stopLooking(key: string): void {
    looking.get(key)?.stop();
    looking.delete(key);
  }

  // User data that was written, by UID of the KubevirtMachine: does it let this provider in?
  const userData = new Map<string, { injected: boolean }>();

  const ensureUserData = async (
    { object, machine, kubevirtCluster }: Scope,
    dataSecretName: string,
  ): Promise<{ injected: boolean }> => {
    const bootstrap = await client.get(secrets, {
      namespace: machine.metadata.namespace,
      name: dataSecretName,
    });
    const keysName = kubevirtCluster.spec.sshKeys?.dataSecretName;
    const keys = keysName
      ? await find(client, secrets, kubevirtCluster.metadata.namespace, keysName)
      : undefined;
    const publicKey = decode(keys?.data?.['pub']);
    const value = decode(bootstrap.data?.['value']);
    const text = publicKey ? withCapkUser(value, publicKey) : value;
    const name = userDataName(dataSecretName);
    const data = { userdata: encode(text) };
    const present = await find(client, secrets, vmNamespace(object), name);
    if (!present) {
      const metadata = {
        name,
        namespace: vmNamespace(object),
        ...(bootstrap.metadata.labels ? { labels: bootstrap.metadata.labels } : {}),
      };
      await client.create(secrets, { metadata, type: CLUSTER_SECRET_TYPE, data }, MANAGER);
    } else if (!deepEqual(present.data, data)) await client.update(secrets, { ...present, data }, MANAGER);
    return { injected: publicKey !== '' && text.includes(publicKey) };
  };

  const createVm = async (scope: Scope, dataSecretName: string): Promise<void> => {
    const { object } = scope;
    try {
      await client.create(
        virtualMachines,
        machineVm(object, scope.machine, scope.cluster, dataSecretName),
        MANAGER,
      );
    } catch (error) {
      if (isAlreadyExists(error)) return;
      const message = `Failed vm creation: ${error instanceof Error ? error.message : String(error)}`;
      report(object, clock.now(), {
        type: 'VMProvisioned',
        status: 'False',
        reason: 'VMCreateFailed',
        message,
      });
      await saveChanges(client, kubevirtMachines, scope.base, object);
      throw error;
    }
  };

  const hasSentinel = ({ object }: Scope): boolean =>
    guests.readFile(vmNamespace(object), object.metadata.name, SENTINEL_FILE)?.trim() === SENTINEL_CONTENT;

  /** Is the guest bootstrapped? While it is not, its directory is watched. */
  const isBootstrapped = (scope: Scope, vmi: VirtualMachineInstance): boolean => {
    const { object } = scope;
    if (object.spec.virtualMachineBootstrapCheck?.checkStrategy === 'none') return true;
    const key = objectKey(object);
    if (looking.get(key)?.uid !== vmi.metadata.uid && guests.watch) {
      stopLooking(key);
      const watch = guests.watch(vmNamespace(object), object.metadata.name, SENTINEL_DIRECTORY, () => {
        if (hasSentinel(scope)) loop.enqueue(key);
      });
      looking.set(key, { uid: vmi.metadata.uid ?? '', stop: () => watch.stop() });
    }
    if (!hasSentinel(scope)) return false;
    stopLooking(key);
    return true;
  };

  const waiting = (object: KubevirtMachine, reason: string, message = ''): undefined => {
    report(object, clock.now(), { type: 'VMProvisioned', status: 'False', reason, message });
    return undefined;
  };

  const followVm = (scope: Scope, injected: boolean): Outcome => {
    const { object } = scope;
    const status = (object.status ??= { ready: false });
    const key = `${vmNamespace(object)}/${object.metadata.name}`;
    const vm = caches.virtualMachines.get(key);
    const vmi = caches.instances.get(key);
    if (!vmi || !isReady(vmi)) {
      status.ready = false;
      const { reason, message } = notReady(vm);
      return waiting(object, reason, message);
    }
    report(object, clock.now(), { type: 'VMProvisioned', status: 'True', reason: 'VMProvisioned' });
    if (!vmi.status?.interfaces?.[0]?.ipAddress) {
      if (!status.addresses?.some((address) => address.type === 'InternalIP')) status.ready = false;
      return undefined;
    }
    if (!injected) {
      if (!isTrue(object, 'BootstrapExecSucceeded'))
        report(object, clock.now(), {
          type: 'BootstrapExecSucceeded',
          status: 'True',
          reason: 'BootstrapCheckingNotSupported',
        });
    } else if (!isTrue(object, 'BootstrapExecSucceeded')) {
      if (!isBootstrapped(scope, vmi)) {
        status.ready = false;
        report(object, clock.now(), {
          type: 'BootstrapExecSucceeded',
          status: 'False',
          reason: 'BootstrapFailed',
          message: 'VM not bootstrapped yet',
        });
        return { requeueAfter: BOOTSTRAP_CHECK };
      }
      report(object, clock.now(), {
        type: 'BootstrapExecSucceeded',
        status: 'True',
        reason: 'BootstrapExecSucceeded',
      });
    }
    reportProvisioned(object, vmi, clock.now());
    return undefined;
  };

  const provide = async (scope: Scope): Promise<Outcome> => {
    const { object, machine, cluster } = scope;
    if (!isTrue(cluster, 'InfrastructureReady')) return waiting(object, 'WaitingForClusterInfrastructure');
    const { dataSecretName } = machine.spec.bootstrap;
    if (!dataSecretName) {
      const worker = machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined;
      return waiting(
        object,
        worker && !isTrue(cluster, 'ControlPlaneInitialized')
          ? 'WaitingForControlPlaneAvailable'
          : 'WaitingForBootstrapData',
      );
    }
    const key = `${vmNamespace(object)}/${object.metadata.name}`;
    const vm = caches.virtualMachines.get(key);
    const uid = object.metadata.uid ?? '';
    // A machine that is on its way has read its user data; the next one (a new VMI) gets it checked again.
    const known = vm && caches.instances.get(key)?.status?.phase ? userData.get(uid) : undefined;
    const { injected } = known ?? (await ensureUserData(scope, dataSecretName));
    userData.set(uid, { injected });
    const terminal = terminalReason(vm, caches.instances.get(key));
    const status = (object.status ??= { ready: false });
    if (terminal) Object.assign(status, { failureReason: 'UpdateError', failureMessage: terminal });
    else {
      delete status.failureReason;
      delete status.failureMessage;
    }
    if (!vm && !terminal) {
      status.ready = false;
      await createVm(scope, dataSecretName);
    }
    return followVm(scope, injected);
  };

  /** Writes the providerID onto the Node when this provider is asked to; whoever is first wins. */
  const writeProviderId = async ({ object, cluster, kubevirtCluster }: Scope): Promise<Outcome> => {
    const asked =
      kubevirtCluster.metadata.annotations?.[PATCH_PROVIDER_ID_ANNOTATION] === 'true' ||
      context.patchNodeProviderId;
    const status = (object.status ??= { ready: false });
    if (!asked || !status.ready || status.nodeupdated || !object.spec.providerID) return undefined;
    const { name } = object.metadata;
    const { providerID } = object.spec;
    return workloads.attempt(objectKey(cluster), async (workload) => {
      const node = await find(workload, nodes, undefined, name);
      if (!node) return { requeueAfter: NODE_CHECK };
      if (node.spec?.providerID !== providerID) {
        await workload.patch(
          nodes,
          { name },
          { type: 'merge', body: { spec: { providerID } } },
          { fieldManager: 'capk-manager' },
        );
        status.nodeupdated = true;
      }
      return undefined;
    });
  };

  const takeDown = async (object: KubevirtMachine, machine: Machine | undefined): Promise<void> => {
    stopLooking(objectKey(object));
    const namespace = vmNamespace(object);
    const vm = await find(client, virtualMachines, namespace, object.metadata.name);
    if (vm) await remove(client, virtualMachines, vm);
    const dataSecretName = machine?.spec.bootstrap.dataSecretName;
    const secret = dataSecretName && (await find(client, secrets, namespace, userDataName(dataSecretName)));
    if (secret) await remove(client, secrets, secret);
    userData.delete(object.metadata.uid ?? '');
    report(object, clock.now(), { type: 'VMProvisioned', status: 'False', reason: 'Deleting' });
    dropFinalizer(object, KUBEVIRT_MACHINE_FINALIZER);
  };

  const scopeOf = (
    object: KubevirtMachine,
  ): Partial<Pick<Scope, 'machine' | 'cluster' | 'kubevirtCluster'>> => {
    const owner = object.metadata.ownerReferences?.find((reference) => reference.kind === 'Machine');
    const machine = owner && caches.machines.get(`${object.metadata.namespace ?? ''}/${owner.name}`);
    if (!machine) return {};
    const cluster = caches.clusters.get(`${machine.metadata.namespace ?? ''}/${machine.spec.clusterName}`);
    const kubevirtCluster =
      cluster &&
      caches.kubevirtClusters.get(
        `${cluster.metadata.namespace ?? ''}/${cluster.spec.infrastructureRef?.name ?? ''}`,
      );
    return { machine, ...(cluster ? { cluster } : {}), ...(kubevirtCluster ? { kubevirtCluster } : {}) };
  };

  const reconcile = async (key: string): Promise<Outcome> => {
    let before = caches.kubevirtMachines.get(key);
    if (!before) return undefined;
    const { machine, cluster, kubevirtCluster } = scopeOf(before);
    const leaving = before.metadata.deletionTimestamp !== undefined;
    // One that is going may have lost its Machine, or never got it.
    if ((!machine && !leaving) || pauses(cluster, before).length > 0) return undefined;
    if (leaving && !before.metadata.finalizers?.includes(KUBEVIRT_MACHINE_FINALIZER)) return undefined;
    if (!leaving) before = await withFinalizer(client, kubevirtMachines, before, KUBEVIRT_MACHINE_FINALIZER);
    const object = cloneJson(before);
    object.status ??= { ready: false };
    let outcome: Outcome;
    if (leaving) await takeDown(object, machine);
    else {
      if (!machine || !cluster || !kubevirtCluster) return undefined;
      const scope = { base: before, object, machine, cluster, kubevirtCluster };
      outcome = await provide(scope);
      outcome ??= await writeProviderId(scope);
    }
    report(
      object,
      clock.now(),
      summarize(object, 'Ready', {
        of: ['VMProvisioned', 'BootstrapExecSucceeded'],
        reasons: words('Ready'),
      }),
      pausedFinding([]),
    );
    await saveChanges(client, kubevirtMachines, before, object);
    return outcome;
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      for (const key of [...looking.keys()]) stopLooking(key);
      await loop.stop();
    },
  };
}
