import type { Pod, PriorityClass, UnstructuredObject } from '#server/kube';
import { as, type ServerFacilities } from '../kind.ts';
import { SYSTEM_PRIORITIES } from '../kinds/scheduling-strategy.ts';
import type { AdmissionAttributes } from './chain.ts';
import { concerns, refuse } from './refusal.ts';

const RESOURCE = { group: 'scheduling.k8s.io', plural: 'priorityclasses' };
const PREEMPT = 'PreemptLowerPriority';

interface Priority {
  className: string;
  value: number;
  policy: string;
}

function defaultClass(server: ServerFacilities): PriorityClass | undefined {
  return server
    .list(RESOURCE)
    .map((object) => as<PriorityClass>(object))
    .filter((one) => one.globalDefault)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0];
}

function priorityOf(attributes: AdmissionAttributes, pod: Pod): Priority {
  const { server } = attributes;
  const className = pod.spec.priorityClassName;
  const found = className ? server.read(RESOURCE, undefined, className) : defaultClass(server);
  if (found) {
    const { metadata, value, preemptionPolicy } = as<PriorityClass>(found);
    return { className: metadata.name, value: value ?? 0, policy: preemptionPolicy ?? PREEMPT };
  }
  if (!className) return { className: '', value: 0, policy: PREEMPT };
  const system = SYSTEM_PRIORITIES[className];
  if (system === undefined) throw refuse(attributes, `no PriorityClass with name ${className} was found`);
  return { className, value: system, policy: PREEMPT };
}

/**
 * A pod's priority and preemption policy come from its class and from nowhere else.
 * Models kubernetes/plugin/pkg/admission/priority.
 */
export function defaultPriority(attributes: AdmissionAttributes): void {
  if (!attributes.object || !concerns(attributes, 'pods')) return;
  const { spec } = as<Pod>(attributes.object);
  if (attributes.operation === 'UPDATE') {
    const before = attributes.old ? as<Pod>(attributes.old).spec : undefined;
    if (before?.priority !== undefined) spec.priority ??= before.priority;
    if (before?.preemptionPolicy !== undefined) spec.preemptionPolicy ??= before.preemptionPolicy;
    return;
  }
  if (attributes.operation !== 'CREATE') return;
  const { className, value, policy } = priorityOf(attributes, as<Pod>(attributes.object));
  const from = 'from the given PriorityClass name';
  if (spec.priority !== undefined && spec.priority !== value) {
    throw refuse(
      attributes,
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} ${from}`,
    );
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
    throw refuse(
      attributes,
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} ${from}`,
    );
  }
  if (className) spec.priorityClassName = className;
  spec.priority = value;
  spec.preemptionPolicy = policy;
}

/** One class at most is the default of all pods without a class. */
export function admitPriority(attributes: AdmissionAttributes): void {
  const { kind, operation, object, server } = attributes;
  if (kind.group !== RESOURCE.group || kind.plural !== RESOURCE.plural || !object) return;
  if (operation !== 'CREATE' && operation !== 'UPDATE') return;
  if (!isDefault(object)) return;
  const other = server
    .list(RESOURCE)
    .find((one) => isDefault(one) && one.metadata.name !== object.metadata.name);
  if (!other) return;
  throw refuse(
    attributes,
    `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`,
  );
}

function isDefault(object: UnstructuredObject): boolean {
  return as<PriorityClass>(object).globalDefault === true;
}
