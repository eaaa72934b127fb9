import type { Clock } from '#server/base';
import type { Image, ImageCatalogue } from '../contract.ts';
import { parseImageReference } from '../images/reference.ts';
import type { NodeImage } from './node-object.ts';
import { rest } from './retry.ts';

export interface PulledImage {
  readonly image: Image;
  /** `docker.io/library/nginx:1.29`: what containerStatuses show as `image`. */
  readonly reference: string;
  /** `docker.io/library/nginx@sha256:…` */
  readonly imageId: string;
}

/** Images this machine can hold in its list; the oldest go first. */
const MAX_IMAGES = 200;
/** How many of the registry's images an error names. */
const MAX_NAMED = 40;

/** Why an image cannot be had; the message is the runtime's. */
export class ImagePullError extends Error {
  override readonly name = 'ImagePullError';
}

/** The images of one machine. */
export interface ImageStore {
  /** Undefined: not on this machine. */
  present(reference: string): PulledImage | undefined;
  /** Whether it is a reference at all. */
  valid(reference: string): boolean;
  /** Rejects with ImagePullError. */
  pull(reference: string, signal: AbortSignal): Promise<PulledImage>;
  list(): NodeImage[];
}

export function createImageStore(options: {
  catalogue: ImageCatalogue;
  delays: { imagePull(image: string): number };
  clock: Clock;
  onChange: () => void;
}): ImageStore {
  const { catalogue, delays, clock } = options;
  const held = new Map<string, PulledImage>();
  const find = (reference: string): PulledImage | undefined => {
    const found = catalogue.find(reference);
    if (!found) return undefined;
    const digested = parseImageReference(reference)?.digest !== undefined;
    const imageId = `${found.image.repository}@${found.digest}`;
    return { image: found.image, reference: digested ? imageId : found.reference, imageId };
  };
  return {
    valid: (reference) => parseImageReference(reference) !== undefined,
    present(reference) {
      const found = find(reference);
      return found && held.get(found.reference);
    },
    async pull(reference, signal) {
      const wait = delays.imagePull(reference);
      const found = find(reference);
      if (wait > 0) await rest(clock, found ? wait : Math.min(wait, 1_000), signal);
      signal.throwIfAborted();
      if (!found) throw new ImagePullError(notCarried(reference, catalogue));
      const isNew = !held.has(found.reference);
      held.delete(found.reference);
      held.set(found.reference, found);
      if (held.size > MAX_IMAGES) held.delete(held.keys().next().value ?? '');
      if (isNew) options.onChange();
      return found;
    },
    list() {
      const byId = new Map<string, { names: string[]; sizeBytes: number }>();
      for (const pulled of held.values()) {
        const entry = byId.get(pulled.imageId) ?? { names: [pulled.imageId], sizeBytes: pulled.image.size };
        if (!entry.names.includes(pulled.reference)) entry.names.push(pulled.reference);
        byId.set(pulled.imageId, entry);
      }
      return [...byId.values()].sort((a, b) => b.sizeBytes - a.sizeBytes);
    },
  };
}

function notCarried(reference: string, catalogue: ImageCatalogue): string {
  const parsed = parseImageReference(reference);
  const full = parsed ? `${parsed.repository}:${parsed.tag}` : reference;
  const carried = catalogue.list();
  const named = carried.slice(0, MAX_NAMED).join(', ');
  return (
    `rpc error: code = NotFound desc = failed to pull and unpack image "${full}": failed to resolve image: ${full}: not found` +
    ` (this lab's registry carries only: ${named}${carried.length > MAX_NAMED ? ', …' : ''})`
  );
}
