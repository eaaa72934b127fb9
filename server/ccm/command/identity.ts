/** Upstream's release this program stands for. */
export const VERSION = 'v0.6.0';
/** The name of the binary: the field manager of everything it writes. */
export const BINARY = 'kubevirt-cloud-controller-manager';
/** The component as flags, events and the lease know it. */
export const COMPONENT = 'cloud-controller-manager';

/** The User-Agent of one of its clients, as client-go words it for a build without a commit. */
export function userAgent(component?: string): string {
  const binary = `${BINARY}/${VERSION} (linux/arm64) kubernetes/$Format`;
  return component === undefined ? binary : `${binary}/${component}`;
}
