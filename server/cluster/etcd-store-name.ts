/**
 * A control plane's data lives on its machine's disk: the store that stands for /var/lib/etcd is named by both, so that a
 * machine made anew with a fresh disk begins with nothing, and goes with its disk.
 */
export function etcdStoreName(path: string, diskId: string): string {
  return `${path}@${diskId}`;
}

/** The reverse; undefined for stores of something else. */
export function parseEtcdStoreName(name: string): { path: string; diskId: string } | undefined {
  const at = name.lastIndexOf('@');
  return at < 0 ? undefined : { path: name.slice(0, at), diskId: name.slice(at + 1) };
}
