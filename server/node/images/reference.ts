/** A parsed image reference. Models distribution/reference: `nginx` is `docker.io/library/nginx:latest`. */
export interface ImageReference {
  /** `docker.io/library/nginx` */
  readonly repository: string;
  readonly tag: string;
  readonly digest: string | undefined;
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const MAX_REFERENCE = 512;

/** Undefined when it is not a valid reference (`invalid reference format`). */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text.length === 0 || text.length > MAX_REFERENCE) return undefined;
  const [beforeDigest = '', digest, ...rest] = text.split('@');
  if (rest.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return undefined;
  const slash = beforeDigest.lastIndexOf('/');
  const colon = beforeDigest.indexOf(':', slash + 1);
  const name = colon < 0 ? beforeDigest : beforeDigest.slice(0, colon);
  const tag = colon < 0 ? 'latest' : beforeDigest.slice(colon + 1);
  if (!TAG.test(tag)) return undefined;
  const first = name.split('/')[0] ?? '';
  const hasHost = name.includes('/') && (first.includes('.') || first.includes(':') || first === 'localhost');
  const host = hasHost ? first : 'docker.io';
  const path = hasHost ? name.slice(first.length + 1) : name;
  const full = host === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  if (!full.split('/').every((part) => COMPONENT.test(part))) return undefined;
  return { repository: `${host === 'index.docker.io' ? 'docker.io' : host}/${full}`, tag, digest };
}
