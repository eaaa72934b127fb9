import type { AdmissionAttributes } from './chain.ts';
export function admitPriority(_attributes: AdmissionAttributes): void {}
export function defaultPriority(_attributes: AdmissionAttributes): void {}
