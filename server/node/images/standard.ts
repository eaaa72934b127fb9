import type { Image } from '../contract.ts';

/** The images every node can pull. */
export function standardImages(): Image[] {
  return [];
}
