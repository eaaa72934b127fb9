import { timingSafeEqual } from 'node:crypto';
import type { Secret, UserInfo } from '#server/kube';
import type { ServerFacilities } from '../kind.ts';

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
const SECRET_TYPE = 'bootstrap.kubernetes.io/token';
const DEFAULT_GROUP = 'system:bootstrappers';

/**
 * Whom a token `<id>.<secret>` proves: system:bootstrap:<id>, when kube-system holds its Secret
 * (`bootstrap-token-<id>`), the secret part matches, it has not expired and may be used for authentication. Read anew
 * every time. Models kubernetes/plugin/pkg/auth/authenticator/token/bootstrap.
 */
export function authenticateBootstrapToken(
  token: string,
  facilities: Pick<ServerFacilities, 'now' | 'read'>,
): UserInfo | undefined {
  const [, id, secretPart] = TOKEN.exec(token) ?? [];
  if (!id || !secretPart) return undefined;
  const stored = facilities.read({ group: '', plural: 'secrets' }, 'kube-system', `bootstrap-token-${id}`);
  const secret = stored as Secret | undefined;
  if (!secret || secret.metadata.deletionTimestamp || secret.type !== SECRET_TYPE) return undefined;
  const value = (key: string): string => Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
  if (!sameText(value('token-secret'), secretPart) || value('token-id') !== id) return undefined;
  if (isExpired(value('expiration'), facilities.now()) || value('usage-bootstrap-authentication') !== 'true')
    return undefined;
  const extra = value('auth-extra-groups').split(',').filter(Boolean);
  if (!extra.every((group) => EXTRA_GROUP.test(group))) return undefined;
  return { name: `system:bootstrap:${id}`, groups: [...new Set([DEFAULT_GROUP, ...extra])].sort() };
}

function sameText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A time that cannot be read has passed. */
function isExpired(expiration: string, now: number): boolean {
  if (!expiration) return false;
  const at = Date.parse(expiration);
  return Number.isNaN(at) || at <= now;
}
