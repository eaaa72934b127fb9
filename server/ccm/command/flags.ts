import type { Flag, FlagType } from './flag-set.ts';

export interface FlagSection {
  readonly title: string;
  readonly flags: readonly Flag[];
}

type Row = readonly [name: string, type: FlagType, fallback: string, usage: string, extra?: Partial<Flag>];

/**
 * Everything upstream's command line takes. Flags of parts this program does not have (webhooks, delegated
 * authentication, TLS) are accepted and do nothing, so that a manifest written for upstream works.
 * Models the flag sets of k8s.io/cloud-provider/options.
 */
const SECTIONS: readonly (readonly [title: string, rows: readonly Row[]])[] = [
  [
    'Generic flags',
    [
      ['cloud-provider', 'string', '', 'The cloud to serve: kubevirt.'],
      ['cloud-config', 'string', '', "File with the cloud provider's configuration."],
      [
        'controllers',
        'strings',
        '[*]',
        "Which controllers run: '*' for all, 'foo' for one, '-foo' to leave one out.",
      ],
      ['cluster-name', 'string', 'kubernetes', "The cluster's name towards the cloud."],
      ['cluster-cidr', 'string', '', 'Address ranges of pods, separated by commas.'],
      ['allocate-node-cidrs', 'bool', 'false', 'Whether nodes get address ranges for their pods.'],
      ['cidr-allocator-type', 'string', 'RangeAllocator', 'How these ranges are chosen.'],
      [
        'configure-cloud-routes',
        'bool',
        'true',
        "Whether the cloud's routes follow the nodes' address ranges.",
      ],
      ['node-monitor-period', 'duration', '5s', 'How often the lifecycle of nodes is looked at.'],
      ['route-reconciliation-period', 'duration', '10s', 'How often routes are looked at.'],
      ['controller-start-interval', 'duration', '0s', 'Pause between the starts of two controllers.'],
      ['min-resync-period', 'duration', '12h0m0s', 'Has no effect: caches here are not resynchronized.'],
      ['kube-api-qps', 'float32', '20', 'Has no effect: requests here are not limited.'],
      ['kube-api-burst', 'int32', '30', 'Has no effect: requests here are not limited.'],
      ['kube-api-content-type', 'string', 'application/vnd.kubernetes.protobuf', 'Has no effect.'],
      [
        'use-service-account-credentials',
        'bool',
        'false',
        'Has no effect: all controllers use the kubeconfig.',
      ],
      ['external-cloud-volume-plugin', 'string', '', 'Has no effect.'],
      ['feature-gates', 'other', '', 'Has no effect.'],
      ['enable-leader-migration', 'bool', 'false', 'Has no effect.'],
      ['leader-migration-config', 'string', '', 'Has no effect.'],
      ['leader-elect', 'bool', 'true', 'Wait for the lease before working.'],
      [
        'leader-elect-lease-duration',
        'duration',
        '15s',
        'How long others respect a lease that is not renewed.',
      ],
      [
        'leader-elect-renew-deadline',
        'duration',
        '10s',
        'How long the leader tries to renew before it gives up.',
      ],
      [
        'leader-elect-retry-period',
        'duration',
        '2s',
        'Pause between two attempts to get or renew the lease.',
      ],
      ['leader-elect-resource-lock', 'string', 'leases', "What is locked: 'leases'."],
      ['leader-elect-resource-name', 'string', 'cloud-controller-manager', 'Name of the Lease.'],
      ['leader-elect-resource-namespace', 'string', 'kube-system', 'Namespace of the Lease.'],
      [
        'allow-untagged-cloud',
        'bool',
        'false',
        'Run although the cloud has no cluster id.',
        {
          deprecated:
            'This flag is deprecated and will be removed in a future release. A cluster-id will be required on cloud instances.',
        },
      ],
      [
        'node-sync-period',
        'duration',
        '0s',
        'Has no effect.',
        { deprecated: 'This flag is currently no-op and will be deleted.' },
      ],
    ],
  ],
  [
    'Debugging flags',
    [
      ['profiling', 'bool', 'true', 'Has no effect.'],
      ['contention-profiling', 'bool', 'false', 'Has no effect.'],
    ],
  ],
  [
    'Cloud-node-controller flags',
    [
      ['concurrent-node-syncs', 'int32', '1', 'How many nodes are initialised at once.'],
      [
        'concurrent-node-status-updates',
        'int32',
        '0',
        "How many nodes' addresses are updated at once; 0: as many as are initialised.",
      ],
    ],
  ],
  [
    'Service-lb-controller flags',
    [['concurrent-service-syncs', 'int32', '1', 'How many services are worked on at once.']],
  ],
  [
    'Webhook flags',
    [
      ['webhooks', 'strings', '[]', 'Has no effect.'],
      ['webhook-bind-address', 'ip', '0.0.0.0', 'Has no effect.'],
      ['webhook-secure-port', 'int', '10260', 'Has no effect.'],
      ['webhook-disable-http2-serving', 'bool', 'false', 'Has no effect.'],
      ['webhook-cert-dir', 'string', '', 'Has no effect.'],
      ['webhook-tls-cert-file', 'string', '', 'Has no effect.'],
      ['webhook-tls-private-key-file', 'string', '', 'Has no effect.'],
      ['webhook-tls-cipher-suites', 'strings', '', 'Has no effect.'],
      ['webhook-tls-curve-preferences', 'other', '', 'Has no effect.'],
      ['webhook-tls-min-version', 'string', '', 'Has no effect.'],
      ['webhook-tls-sni-cert-key', 'other', '[]', 'Has no effect.'],
    ],
  ],
  [
    'Secure serving flags',
    [
      ['secure-port', 'int', '10258', 'Where /healthz and /metrics are served; 0: nowhere.'],
      ['bind-address', 'ip', '0.0.0.0', 'Has no effect: all addresses of the pod.'],
      ['cert-dir', 'string', '', 'Has no effect: served without TLS.'],
      ['tls-cert-file', 'string', '', 'Has no effect: served without TLS.'],
      ['tls-private-key-file', 'string', '', 'Has no effect: served without TLS.'],
      ['tls-cipher-suites', 'strings', '', 'Has no effect: served without TLS.'],
      ['tls-curve-preferences', 'other', '', 'Has no effect: served without TLS.'],
      ['tls-min-version', 'string', '', 'Has no effect: served without TLS.'],
      ['tls-sni-cert-key', 'other', '[]', 'Has no effect: served without TLS.'],
      ['disable-http2-serving', 'bool', 'false', 'Has no effect.'],
      ['http2-max-streams-per-connection', 'int', '0', 'Has no effect.'],
      ['permit-address-sharing', 'bool', 'false', 'Has no effect.'],
      ['permit-port-sharing', 'bool', 'false', 'Has no effect.'],
    ],
  ],
  [
    'Authentication flags',
    [
      ['authentication-kubeconfig', 'string', '', 'Has no effect.'],
      ['authentication-skip-lookup', 'bool', 'false', 'Has no effect.'],
      ['authentication-tolerate-lookup-failure', 'bool', 'false', 'Has no effect.'],
      ['authentication-token-webhook-cache-ttl', 'duration', '10s', 'Has no effect.'],
      ['client-ca-file', 'string', '', 'Has no effect.'],
      ['requestheader-allowed-names', 'strings', '', 'Has no effect.'],
      ['requestheader-client-ca-file', 'string', '', 'Has no effect.'],
      ['requestheader-extra-headers-prefix', 'strings', '[x-remote-extra-]', 'Has no effect.'],
      ['requestheader-group-headers', 'strings', '[x-remote-group]', 'Has no effect.'],
      ['requestheader-uid-headers', 'strings', '', 'Has no effect.'],
      ['requestheader-username-headers', 'strings', '[x-remote-user]', 'Has no effect.'],
    ],
  ],
  [
    'Authorization flags',
    [
      ['authorization-always-allow-paths', 'strings', '[/healthz,/readyz,/livez]', 'Has no effect.'],
      ['authorization-kubeconfig', 'string', '', 'Has no effect.'],
      ['authorization-webhook-cache-authorized-ttl', 'duration', '10s', 'Has no effect.'],
      ['authorization-webhook-cache-unauthorized-ttl', 'duration', '10s', 'Has no effect.'],
    ],
  ],
  [
    'Misc flags',
    [
      ['kubeconfig', 'string', '', 'File that leads to the cluster to serve.'],
      ['master', 'string', '', "The API server's address, instead of the one in the kubeconfig."],
      ['node-status-update-frequency', 'duration', '5m0s', "How often nodes' addresses are looked at."],
    ],
  ],
  [
    'Global flags',
    [
      ['help', 'bool', 'false', 'Show this.', { shorthand: 'h' }],
      ['version', 'bool', 'false', 'Show the version.'],
      ['v', 'level', '0', 'How much to log.', { shorthand: 'v' }],
      ['vmodule', 'other', '', 'Has no effect.'],
      ['logging-format', 'string', 'text', 'Has no effect.'],
      ['log-flush-frequency', 'duration', '5s', 'Has no effect.'],
      ['log-text-split-stream', 'bool', 'false', 'Has no effect.'],
      ['log-text-info-buffer-size', 'other', '0', 'Has no effect.'],
      ['log-json-split-stream', 'bool', 'false', 'Has no effect.'],
      ['log-json-info-buffer-size', 'other', '0', 'Has no effect.'],
    ],
  ],
];

export const FLAG_SECTIONS: readonly FlagSection[] = SECTIONS.map(([title, rows]) => ({
  title,
  flags: rows.map(([name, type, fallback, usage, extra]) => ({ name, type, fallback, usage, ...extra })),
}));

export const FLAGS: readonly Flag[] = FLAG_SECTIONS.flatMap(({ flags }) => flags);

const USE = 'Usage:\n  cloud-controller-manager [flags]\n';
const ABOUT = 'The cloud-controller-manager runs the control loops that know the cloud a cluster runs in.';

/** What is printed before a wrong flag's error. */
export function usageText(): string {
  return USE + FLAG_SECTIONS.map(sectionText).join('');
}

/** What `--help` prints. */
export function helpText(): string {
  return `${ABOUT}\n\n${usageText()}`;
}

function sectionText({ title, flags }: FlagSection): string {
  const lines = [...flags]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((flag) => {
      const shorthand = flag.shorthand ? `-${flag.shorthand}, ` : '    ';
      const type = flag.type === 'bool' ? '' : ` ${flag.type === 'other' ? 'value' : flag.type}`;
      const fallback = ['', 'false', '0', '[]', '0s'].includes(flag.fallback)
        ? ''
        : ` (default ${flag.fallback})`;
      return `  ${shorthand}--${flag.name}${type}\n                ${flag.usage}${fallback}\n`;
    });
  return `\n${title}:\n\n${lines.join('')}`;
}
