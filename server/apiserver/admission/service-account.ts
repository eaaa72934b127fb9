import type { AdmissionAttributes } from './chain.ts';
export function admitServiceAccount(_attributes: AdmissionAttributes): void {}
export function validateServiceAccount(_attributes: AdmissionAttributes): void {}
