import { formatTime, type Node } from '#server/kube';
import {
  type Conditioned,
  conditionOf,
  deletingFinding,
  type Finding,
  isTrue,
  report,
  summarize,
  words,
} from './conditions.ts';
import { controlPlaneFindings } from './control-plane-health.ts';
import type { Cluster, Machine, MachineDeployment, MachineSet } from './core-resources.ts';
import { nodeFindings, noNode } from './machine-node.ts';
import { sameTemplate } from './machine-templates.ts';
import { CONTROL_PLANE_LABEL } from './vocabulary.ts';
import type { WorkloadCaches } from './workloads.ts';

/** What a Machine's status is made of. */
export interface MachineFacts {
  machine: Machine;
  cluster: Cluster;
  config: Conditioned | undefined;
  infrastructure: Conditioned | undefined;
  node: Node | undefined;
  workload: WorkloadCaches | undefined;
  owner: {
    set?: MachineSet | undefined;
    deployment?: MachineDeployment | undefined;
    controlPlaneVersion?: string | undefined;
  };
  deleting: { reason: string; message: string };
  now: number;
}

/** Mirrors the Ready condition of what a Machine is made of, under another name. */
function mirror(
  type: string,
  ready: string,
  facts: { kind: string; object: Conditioned | undefined; done: boolean; field: string; deleting: boolean },
): Finding {
  const { kind, object, done } = facts;
  if (!object) {
    const deleted = done ? 'Deleted' : 'DoesNotExist';
    const message = !done
      ? `${kind} does not exist`
      : facts.deleting
        ? `${kind} has been deleted`
        : `${kind} has been deleted while the Machine still exists`;
    return { type, status: 'False', reason: deleted, message };
  }
  const condition = conditionOf(object, 'Ready');
  if (!condition)
    return {
      type,
      status: done ? 'True' : 'False',
      reason: done ? ready : `Not${ready}`,
      message: done ? '' : `${kind} ${facts.field} is false`,
    };
  return { type, status: condition.status, reason: condition.reason, message: condition.message };
}

function bootstrapFinding({ machine, config }: MachineFacts): Finding {
  const ref = machine.spec.bootstrap.configRef;
  if (!ref) return { type: 'BootstrapConfigReady', status: 'True', reason: 'DataSecretProvided' };
  const done = machine.status?.initialization?.bootstrapDataSecretCreated ?? false;
  return mirror('BootstrapConfigReady', 'Ready', {
    kind: ref.kind,
    object: config,
    done,
    field: 'status.initialization.dataSecretCreated',
    deleting: machine.metadata.deletionTimestamp !== undefined,
  });
}

function infrastructureFinding({ machine, infrastructure }: MachineFacts): Finding {
  const done = machine.status?.initialization?.infrastructureProvisioned ?? false;
  return mirror('InfrastructureReady', 'Ready', {
    kind: machine.spec.infrastructureRef.kind,
    object: infrastructure,
    done,
    field: 'status.initialization.provisioned',
    deleting: machine.metadata.deletionTimestamp !== undefined,
  });
}

function nodeConditions({ machine, cluster, node, workload }: MachineFacts): Finding[] {
  if (!cluster.status?.initialization?.infrastructureProvisioned)
    return noNode(
      'Unknown',
      'InspectionFailed',
      'Waiting for Cluster status.initialization.infrastructureProvisioned to be true',
    );
  if (!isTrue(cluster, 'ControlPlaneInitialized'))
    return noNode('Unknown', 'InspectionFailed', 'Waiting for Cluster control plane to be initialized');
  if (!workload) return noNode('Unknown', 'ConnectionDown', 'Remote connection not established yet');
  if (node) return nodeFindings(node);
  const name = machine.status?.nodeRef?.name;
  if (machine.metadata.deletionTimestamp !== undefined) {
    return name
      ? noNode('False', 'NodeDeleted', `Node ${name} has been deleted`)
      : noNode('Unknown', 'NodeDoesNotExist', 'Node does not exist');
  }
  if (name)
    return noNode('False', 'NodeDeleted', `Node ${name} has been deleted while the Machine still exists`);
  if (machine.spec.providerID)
    return noNode(
      'Unknown',
      'InspectionFailed',
      `Waiting for a Node with spec.providerID ${machine.spec.providerID} to exist`,
    );
  return noNode(
    'Unknown',
    'InspectionFailed',
    `Waiting for ${machine.spec.infrastructureRef.kind} to report spec.providerID`,
  );
}

function upToDateFinding({ machine, owner }: MachineFacts): Finding | undefined {
  const stale = (message: string): Finding => ({
    type: 'UpToDate',
    status: 'False',
    reason: 'NotUpToDate',
    message,
  });
  if (owner.controlPlaneVersion !== undefined) {
    if (owner.controlPlaneVersion !== machine.spec.version)
      return stale(`* Version ${machine.spec.version ?? ''}, ${owner.controlPlaneVersion} required`);
    return { type: 'UpToDate', status: 'True', reason: 'UpToDate' };
  }
  if (!owner.set || !owner.deployment) return undefined;
  if (sameTemplate(owner.set.spec.template, owner.deployment.spec.template))
    return { type: 'UpToDate', status: 'True', reason: 'UpToDate' };
  const [was, wanted] = [owner.set.spec.template.spec.version, owner.deployment.spec.template.spec.version];
  return stale(
    was === wanted
      ? '* Machine template is not up-to-date'
      : `* Version ${was ?? ''}, ${wanted ?? ''} required`,
  );
}

function phaseOf(machine: Machine): NonNullable<Machine['status']>['phase'] {
  const { status, spec } = machine;
  if (machine.metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (status?.nodeRef && status.initialization?.infrastructureProvisioned) return 'Running';
  if (spec.providerID) return 'Provisioned';
  if (status?.initialization?.bootstrapDataSecretCreated && !status.initialization.infrastructureProvisioned)
    return 'Provisioning';
  return status?.phase ?? 'Pending';
}

/** Says Available when the machine has been ready for minReadySeconds; returns milliseconds until then, if it is a wait. */
function reportAvailable(machine: Machine, now: number): number | undefined {
  const ready = conditionOf(machine, 'Ready');
  if (ready?.status !== 'True') {
    report(machine, now, { type: 'Available', status: 'False', reason: 'NotReady' });
    return undefined;
  }
  const left = Date.parse(ready.lastTransitionTime) + (machine.spec.minReadySeconds ?? 0) * 1000 - now;
  if (left <= 0) {
    report(machine, now, { type: 'Available', status: 'True', reason: 'Available' });
    return undefined;
  }
  report(machine, now, { type: 'Available', status: 'False', reason: 'WaitingForMinReadySeconds' });
  return left;
}

/**
 * Fills in a Machine's conditions and phase, in place. Returns milliseconds after which it must be done again without an
 * event. Models machine_controller_status.go, and for control plane Machines what KubeadmControlPlane reports of them.
 */
export function reportMachine(facts: MachineFacts): number | undefined {
  const { machine, now } = facts;
  const controlPlane = machine.metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined;
  report(
    machine,
    now,
    bootstrapFinding(facts),
    infrastructureFinding(facts),
    ...nodeConditions(facts),
    deletingFinding(machine, facts.deleting),
  );
  if (controlPlane && facts.owner.controlPlaneVersion !== undefined)
    report(
      machine,
      now,
      ...controlPlaneFindings(
        facts.node,
        facts.workload,
        'Waiting for Cluster control plane to be initialized',
      ),
    );
  report(machine, now, { type: 'Updating', status: 'False', reason: 'NotUpdating' });
  const upToDate = upToDateFinding(facts);
  if (upToDate) report(machine, now, upToDate);
  const gates = (machine.spec.readinessGates ?? []).map((gate) => gate.conditionType);
  report(
    machine,
    now,
    summarize(machine, 'Ready', {
      of: [
        'Deleting',
        'Updating',
        'BootstrapConfigReady',
        'InfrastructureReady',
        'NodeHealthy',
        'HealthCheckSucceeded',
        ...gates,
      ],
      negative: [
        'Deleting',
        'Updating',
        ...(machine.spec.readinessGates ?? [])
          .filter((gate) => gate.polarity === 'Negative')
          .map((gate) => gate.conditionType),
      ],
      optional: ['HealthCheckSucceeded'],
      reasons: words('Ready'),
    }),
  );
  const status = (machine.status ??= {});
  const phase = phaseOf(machine);
  if (phase && phase !== status.phase) Object.assign(status, { phase, lastUpdated: formatTime(now) });
  return reportAvailable(machine, now);
}
