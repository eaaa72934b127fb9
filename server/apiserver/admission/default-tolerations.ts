import type { AdmissionAttributes } from './chain.ts';
export function admitDefaultTolerations(_attributes: AdmissionAttributes): void {}
