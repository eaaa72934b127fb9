import type { Taint } from '#server/kube';

/** A command line the kubelet refuses to start with; the message is upstream's. */
export class KubeletFlagError extends Error {
  override readonly name = 'KubeletFlagError';
}

/** What the modelled flags of a kubelet's command line say. Models cmd/kubelet/app/options. */
export interface KubeletFlags {
  readonly externalCloudProvider: boolean;
  /** `--node-ip`, first address; undefined also for the unspecified addresses. */
  readonly nodeIp: string | undefined;
  /** `--node-ip=0.0.0.0` or `::`: the default route's address until the cloud answers. */
  readonly nodeIpUnspecified: boolean;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly registerWithTaints: readonly Taint[];
  readonly providerId: string;
  readonly hostnameOverride: string | undefined;
  readonly registerNode: boolean;
}

/** Flags of KubeletConfiguration or of no effect here are accepted as they are. Throws KubeletFlagError. */
export function parseKubeletFlags(args: readonly string[]): KubeletFlags {
  const values = new Map<string, string>();
  for (const [index, arg] of args.entries()) {
    const match = /^--?([A-Za-z0-9-]+)(?:=(.*))?$/s.exec(arg);
    if (!match) continue;
    const next = args[index + 1];
    const value = match[2] ?? (next !== undefined && !next.startsWith('-') ? next : 'true');
    values.set(match[1] ?? '', value.replace(/^"(.*)"$/s, '$1'));
  }
  const provider = values.get('cloud-provider') ?? '';
  if (provider !== '' && provider !== 'external') {
    throw new KubeletFlagError(
      `cloud provider "${provider}" was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider`,
    );
  }
  if (values.has('cloud-config')) throw new KubeletFlagError('unknown flag: --cloud-config');
  const nodeIp = (values.get('node-ip') ?? '').split(',')[0] ?? '';
  const unspecified = nodeIp === '0.0.0.0' || nodeIp === '::';
  return {
    externalCloudProvider: provider === 'external',
    nodeIp: nodeIp === '' || unspecified ? undefined : nodeIp,
    nodeIpUnspecified: unspecified,
    nodeLabels: parseLabels(values.get('node-labels') ?? ''),
    registerWithTaints: parseTaints(values.get('register-with-taints') ?? ''),
    providerId: values.get('provider-id') ?? '',
    hostnameOverride: values.get('hostname-override') || undefined,
    registerNode: values.get('register-node') !== 'false',
  };
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const pair of text.split(',')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    if (equals < 0)
      throw new KubeletFlagError(
        `invalid argument "${text}" for "--node-labels" flag: malformed pair, expect string=string`,
      );
    labels[pair.slice(0, equals).trim()] = pair.slice(equals + 1).trim();
  }
  return labels;
}

function parseTaints(text: string): Taint[] {
  if (text === '') return [];
  return text.split(',').map((item) => {
    const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(item);
    if (!match)
      throw new KubeletFlagError(
        `invalid argument "${text}" for "--register-with-taints" flag: invalid taint spec: ${item}`,
      );
    return { key: match[1] ?? '', ...(match[2] ? { value: match[2] } : {}), effect: match[3] ?? '' };
  });
}
