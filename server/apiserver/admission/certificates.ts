import type { AdmissionAttributes } from './chain.ts';
export function validateCertificateRequests(_attributes: AdmissionAttributes): void {}
