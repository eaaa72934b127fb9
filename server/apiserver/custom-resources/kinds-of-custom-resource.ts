import type { KindDefinition } from '../kind.ts';
import type { CustomResourceDefinition } from './crd-types.ts';

/** One row of the kinds table per served version. Pure: equal definitions give equal rows. */
export function kindsOfCustomResource(_crd: CustomResourceDefinition): KindDefinition[] {
  return [];
}
