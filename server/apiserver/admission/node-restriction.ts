import type { AdmissionAttributes } from './chain.ts';
export function admitNodeRestriction(_attributes: AdmissionAttributes): void {}
