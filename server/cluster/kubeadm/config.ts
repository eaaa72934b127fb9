import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

const args = z.array(z.object({ name: z.string(), value: z.string() })).default([]);
const component = z.object({ extraArgs: args }).prefault({});

const nodeRegistration = z
  .object({
    name: z.string().optional(),
    criSocket: z.string().default('unix:///var/run/containerd/containerd.sock'),
    kubeletExtraArgs: args,
    /** Absent: the control-plane taint; an empty list: none. */
    taints: z
      .array(z.object({ key: z.string(), value: z.string().optional(), effect: z.string() }))
      .nullish(),
    ignorePreflightErrors: z.array(z.string()).optional(),
  })
  .prefault({});

const clusterConfiguration = z.object({
  kind: z.literal('ClusterConfiguration'),
  clusterName: z.string().default('kubernetes'),
  kubernetesVersion: z.string().default('v1.36.3'),
  controlPlaneEndpoint: z.string().optional(),
  certificatesDir: z.string().default('/etc/kubernetes/pki'),
  networking: z
    .object({
      podSubnet: z.string().default('10.244.0.0/16'),
      serviceSubnet: z.string().default('10.96.0.0/12'),
      dnsDomain: z.string().default('cluster.local'),
    })
    .prefault({}),
  apiServer: component,
  controllerManager: component,
  scheduler: component,
});

const initConfiguration = z.object({
  kind: z.literal('InitConfiguration'),
  nodeRegistration,
  localAPIEndpoint: z
    .object({ advertiseAddress: z.string().optional(), bindPort: z.number().default(6443) })
    .prefault({}),
  skipPhases: z.array(z.string()).default([]),
});

const joinConfiguration = z.object({
  kind: z.literal('JoinConfiguration'),
  nodeRegistration,
  discovery: z.object({
    bootstrapToken: z.object({
      token: z.string(),
      apiServerEndpoint: z.string(),
      caCertHashes: z.array(z.string()).default([]),
      unsafeSkipCAVerification: z.boolean().default(false),
    }),
  }),
});

export type ClusterConfiguration = z.infer<typeof clusterConfiguration>;
export type InitConfiguration = z.infer<typeof initConfiguration>;
export type JoinConfiguration = z.infer<typeof joinConfiguration>;
export type NodeRegistration = InitConfiguration['nodeRegistration'];

/** A configuration file kubeadm refuses. */
export class KubeadmConfigError extends Error {
  override readonly name = 'KubeadmConfigError';
}

/**
 * Reads the documents of a kubeadm configuration file (kubeadm.k8s.io/v1beta4). Throws KubeadmConfigError.
 * Models kubernetes/cmd/kubeadm/app/util/config, the fields Cluster API writes.
 */
export function parseKubeadmConfig(text: string): {
  cluster: ClusterConfiguration | undefined;
  init: InitConfiguration | undefined;
  join: JoinConfiguration | undefined;
} {
  const result: ReturnType<typeof parseKubeadmConfig> = {
    cluster: undefined,
    init: undefined,
    join: undefined,
  };
  for (const document of parseAllDocuments(text)) {
    const value = document.toJS({ maxAliasCount: 0 }) as { apiVersion?: string; kind?: string } | null;
    if (!value) continue;
    if (value.apiVersion !== 'kubeadm.k8s.io/v1beta4' && value.apiVersion !== 'kubeadm.k8s.io/v1beta3') {
      if (value.apiVersion?.startsWith('kubeadm.k8s.io/')) {
        throw new KubeadmConfigError(
          `your configuration file uses the API version ${value.apiVersion}, which this kubeadm does not know`,
        );
      }
      continue;
    }
    if (value.kind === 'ClusterConfiguration') result.cluster = check(clusterConfiguration, value);
    else if (value.kind === 'InitConfiguration') result.init = check(initConfiguration, value);
    else if (value.kind === 'JoinConfiguration') result.join = check(joinConfiguration, value);
  }
  return result;
}

function check<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new KubeadmConfigError(z.prettifyError(parsed.error));
  return parsed.data;
}

/** Command-line flags: the defaults, with extra arguments replacing those of the same name, sorted as kubeadm does. */
export function mergeFlags(
  defaults: Readonly<Record<string, string>>,
  extra: readonly { name: string; value: string }[],
): string[] {
  const merged = new Map(Object.entries(defaults));
  for (const { name, value } of extra) merged.set(name, value);
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `--${name}=${value}`);
}
