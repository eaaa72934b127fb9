import type { FileSystem } from '../contract.ts';
import { readText } from '../files/mounted-files.ts';
import type { ResolverConfig } from '../network/contract.ts';

/** How the machine itself resolves names: its /etc/resolv.conf, and its own name. Without the file it asks nobody. */
export function hostResolver(files: FileSystem, hostname: string, ip: string): ResolverConfig {
  const lines = (readText(files, '/etc/resolv.conf') ?? '')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  return {
    nameservers: lines.filter((line) => line[0] === 'nameserver').flatMap((line) => line.slice(1, 2)),
    search: lines.find((line) => line[0] === 'search')?.slice(1) ?? [],
    ndots: 1,
    hosts: { [hostname]: ip },
  };
}
