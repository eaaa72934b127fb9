import type {
  VirtCondition,
  VirtualMachineInstancePhase,
  VirtualMachineInstanceStatus,
} from './resources.ts';

/** The condition of a type, if it was ever reported. */
export function conditionOf(
  conditions: readonly VirtCondition[] | undefined,
  type: string,
): VirtCondition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * Puts a condition in, keeping the old one (and its times) when status, reason and message are the same.
 * Changes and returns `conditions`. Models kubevirt pkg/controller conditions.go.
 */
export function setCondition(conditions: VirtCondition[], next: VirtCondition): VirtCondition[] {
  const index = conditions.findIndex((condition) => condition.type === next.type);
  const old = conditions[index];
  if (!old) conditions.push(next);
  else if (old.status !== next.status || old.reason !== next.reason || old.message !== next.message)
    conditions[index] = next;
  return conditions;
}

/** Takes a condition out, in place. */
export function dropCondition(conditions: VirtCondition[], type: string): void {
  const index = conditions.findIndex((condition) => condition.type === type);
  if (index >= 0) conditions.splice(index, 1);
}

/** Enters a phase and notes when, in place; the same phase again changes nothing. */
export function enterPhase(
  status: VirtualMachineInstanceStatus,
  phase: VirtualMachineInstancePhase,
  now: string,
): void {
  if (status.phase === phase) return;
  status.phase = phase;
  const seen = (status.phaseTransitionTimestamps ?? []).filter((entry) => entry.phase !== phase);
  status.phaseTransitionTimestamps = [...seen, { phase, phaseTransitionTimestamp: now }];
}
