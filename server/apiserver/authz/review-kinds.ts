import type { KindDefinition } from '../kind.ts';

/** Reviews: kinds that are answered, not stored. */
export const reviewKinds: readonly KindDefinition[] = [];
