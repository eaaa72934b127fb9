import { createHash } from 'node:crypto';
import type { Image, ImageCatalogue } from '../contract.ts';
import { parseImageReference } from './reference.ts';

/**
 * The lab's registry. Tags are matched literally or by pattern; `latest` is every image's first tag. The digest is made of
 * the reference, so the same image has the same digest on every node and after every restart.
 */
export function createImageCatalogue(images: readonly Image[]): ImageCatalogue {
  const byRepository = new Map<string, Image[]>();
  for (const image of images)
    byRepository.set(image.repository, [...(byRepository.get(image.repository) ?? []), image]);
  const names = images
    .map(
      (image) =>
        `${image.repository}:${image.tags.map((tag) => (typeof tag === 'string' ? tag : '*')).join('|')}`,
    )
    .sort();
  return {
    find(reference) {
      const parsed = parseImageReference(reference);
      if (!parsed) return undefined;
      for (const image of byRepository.get(parsed.repository) ?? []) {
        const digest = digestOf(image);
        if (parsed.digest !== undefined && parsed.digest !== digest) continue;
        const wanted = parsed.tag;
        const carried = image.tags.some((tag) =>
          typeof tag === 'string' ? tag === wanted : tag.test(wanted),
        );
        if (!carried && wanted !== 'latest') continue;
        return { image, reference: `${parsed.repository}:${wanted}`, digest };
      }
      return undefined;
    },
    list: () => names,
  };
}

const digests = new WeakMap<Image, string>();

function digestOf(image: Image): string {
  const known = digests.get(image);
  if (known) return known;
  const digest = `sha256:${createHash('sha256')
    .update(`${image.repository}\n${image.tags.map(String).join('\n')}`)
    .digest('hex')}`;
  digests.set(image, digest);
  return digest;
}
