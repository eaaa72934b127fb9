import type { AdmissionAttributes } from './chain.ts';
export function admitTaintedNodes(_attributes: AdmissionAttributes): void {}
