import type { IncomingMessage } from 'node:http';
import { errorMessage } from '#server/base';
import { failure, type UserInfo, unauthorized } from '#server/kube';
import { type Authorize, type Impersonation, impersonate } from '../access.ts';
import type { Authenticator } from '../authn/authenticator.ts';
import type { HttpContext } from '../http-context.ts';

const ANONYMOUS: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

/**
 * Who a request comes from, or acts as: its certificate or token, then its Impersonate headers. Without credentials it
 * is anonymous; with bad ones it is refused (401). Models apiserver's authentication and impersonation filters.
 */
export async function userOf(
  request: IncomingMessage,
  context: HttpContext,
  options: { authenticate: Authenticator['authenticate']; authorizer: Authorize },
): Promise<UserInfo> {
  const authorization = request.headers.authorization ?? '';
  const token = /^bearer +(.+)$/i.exec(authorization.trim())?.[1]?.trim();
  const { peerCertificate } = context;
  let user: UserInfo = ANONYMOUS;
  if (token !== undefined || peerCertificate !== undefined) {
    const proven = await options.authenticate({ peerCertificate, bearerToken: token });
    if (!proven) throw unauthorized();
    user = proven;
  }
  const wanted = impersonationOf(request);
  return wanted ? impersonate(options.authorizer, user, wanted) : user;
}

const EXTRA_PREFIX = 'impersonate-extra-';

function impersonationOf(request: IncomingMessage): Impersonation | undefined {
  const { headers } = request;
  const user = single(headers['impersonate-user']);
  const uid = single(headers['impersonate-uid']);
  const groups = rawValues(request, 'impersonate-group');
  const extra: Record<string, string[]> = {};
  for (const name of Object.keys(headers)) {
    if (!name.startsWith(EXTRA_PREFIX)) continue;
    let key = name.slice(EXTRA_PREFIX.length);
    try {
      key = decodeURIComponent(key);
    } catch (error) {
      throw failure(400, 'BadRequest', `header ${name}: ${errorMessage(error)}`);
    }
    extra[key] = rawValues(request, name);
  }
  if (!user && !uid && groups.length === 0 && Object.keys(extra).length === 0) return undefined;
  return { user, uid, groups, extra };
}

function single(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** Node joins repeated headers; groups may hold commas, so the raw ones are read. */
function rawValues(request: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  const raw = request.rawHeaders ?? [];
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (raw[i]?.toLowerCase() === name) values.push(raw[i + 1] ?? '');
  return values;
}
