import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperationalError } from '#server/base';
import { type Authority, createAuthority, createKeyPair, issueCertificate, type KeyPair } from '#server/pki';

/** What the process proves itself with; made once, kept in `DATA_DIR/pki` (0700, files 0600). */
export interface ServerIdentity {
  /** Signs the listener's certificate; every kubeconfig carries its certificate as the server's CA. */
  readonly listenerAuthority: Authority;
  /** The listener's certificate and key. */
  readonly serving: { certPem: string; keyPem: string };
  /** Signs client certificates of the management cluster. */
  readonly managementAuthority: Authority;
  /** Signs service-account tokens of the management cluster. */
  readonly managementServiceAccountKeys: KeyPair;
}

/**
 * Loads or makes the identity. Files are written whole and renamed, so that a process killed while writing leaves
 * either the old state or the new. `names` are the extra host names and addresses the listener answers for.
 */
export async function loadIdentity(
  folder: string,
  options: { now: number; names: readonly string[] },
): Promise<ServerIdentity> {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (cause) {
    throw new OperationalError(`cannot create ${folder}`, {
      cause,
      remedy: 'make DATA_DIR writable, or name another folder',
    });
  }
  const authority = (name: string, commonName: string): Promise<Authority> =>
    kept<Authority>(join(folder, `${name}.json`), () => createAuthority({ commonName, now: options.now }));
  const [listenerAuthority, managementAuthority, managementServiceAccountKeys] = await Promise.all([
    authority('listener-ca', 'kube-classroom-ca'),
    authority('management-ca', 'kubernetes'),
    kept<KeyPair>(join(folder, 'management-sa.json'), async () => createKeyPair()),
  ]);
  const ips = ['127.0.0.1', '::1', ...options.names.filter(isAddress)];
  const dnsNames = ['localhost', ...options.names.filter((name) => !isAddress(name))];
  // The serving certificate is made at every start: it is cheap, and the names may have changed.
  const serving = await issueCertificate({
    authority: listenerAuthority,
    commonName: 'kube-classroom',
    usages: ['server'],
    dnsNames,
    ips,
    now: options.now,
  });
  return { listenerAuthority, serving, managementAuthority, managementServiceAccountKeys };
}

function isAddress(name: string): boolean {
  return /^[\d.]+$/.test(name) || name.includes(':');
}

async function kept<T extends object>(path: string, make: () => Promise<T>): Promise<T> {
  if (existsSync(path)) {
    try {
      return JSON.parse(readFileSync(path, 'utf8')) as T;
    } catch (cause) {
      throw new OperationalError(`cannot read ${path}`, {
        cause,
        remedy: 'restore the file from a copy; without it no credential of the stored clusters is valid',
      });
    }
  }
  const made = await make();
  writeFileSync(`${path}.new`, `${JSON.stringify(made)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return made;
}
