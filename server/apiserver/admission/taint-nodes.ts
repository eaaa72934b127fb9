import type { Node } from '#server/kube';
import { as } from '../kind.ts';
import type { AdmissionAttributes } from './chain.ts';
import { concerns } from './refusal.ts';

const KEY = 'node.kubernetes.io/not-ready';
const EFFECT = 'NoSchedule';

/**
 * A new node takes no pods before the node lifecycle controller has seen it ready.
 * Models kubernetes/plugin/pkg/admission/nodetaint.
 */
export function admitTaintedNodes(attributes: AdmissionAttributes): void {
  if (attributes.operation !== 'CREATE' || !attributes.object || !concerns(attributes, 'nodes')) return;
  const node = as<Node>(attributes.object);
  node.spec ??= {};
  const taints = node.spec.taints ?? [];
  if (taints.some((taint) => taint.key === KEY && taint.effect === EFFECT)) return;
  node.spec.taints = [...taints, { key: KEY, effect: EFFECT }];
}
