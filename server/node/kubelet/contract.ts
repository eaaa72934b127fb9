import type { KubeletApi } from '#server/apiserver';
import type { Clock, Ids, Logger } from '#server/base';
import type { Client, Dialer } from '#server/client';
import type { FileSystem, ImageCatalogue } from '../contract.ts';
import type { AttachedNamespace, Network } from '../network/contract.ts';

/** The machine a kubelet runs on. */
export interface KubeletHost {
  /** The machine's disk: kept over restarts by who owns the machine. */
  readonly files: FileSystem;
  readonly hostname: string;
  readonly ip: string;
  /** `Ubuntu 24.04.3 LTS` */
  readonly osImage: string;
  readonly kernelVersion: string;
  /** GOARCH: `amd64`, `arm64`. */
  readonly architecture: string;
  /** `containerd://2.1.4` */
  readonly containerRuntimeVersion: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  /** Quantities. */
  readonly capacity: {
    readonly cpu: string;
    readonly memory: string;
    readonly pods: string;
    readonly ephemeralStorage: string;
  };
}

/** The part of KubeletConfiguration (/var/lib/kubelet/config.yaml) that is modelled. */
export interface KubeletConfig {
  /** `/etc/kubernetes/manifests`; undefined: no static pods. */
  readonly staticPodPath: string | undefined;
  readonly clusterDNS: readonly string[];
  readonly clusterDomain: string;
  /** Where pod addresses come from: `node` waits for node.spec.podCIDR; a CIDR is used as it is. */
  readonly podCidrFrom: string;
}

export interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly serviceAccount: string;
  readonly nodeName: string;
}

export interface KubeletOptions {
  readonly nodeName: string;
  /** As `system:node:<name>`. Calls may fail with ConnectionError while no API server runs: static pods run all the same. */
  readonly client: Client;
  readonly host: KubeletHost;
  /** The kubelet's command line: `--cloud-provider=external`, `--node-ip=…`, `--node-labels=…`, `--register-with-taints=…`, `--provider-id=…`, `--hostname-override=…`. */
  readonly flags: readonly string[];
  readonly config: KubeletConfig;
  readonly catalogue: ImageCatalogue;
  readonly network: Network;
  /** The node's namespace, when its owner attached it; else the kubelet attaches `host.ip` and detaches it on stop. */
  readonly nodeNetwork?: AttachedNamespace;
  readonly delays: { imagePull(image: string): number };
  /** What reaches API servers from inside this pod. */
  dialerFor(pod: PodIdentity): Dialer;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

export interface Kubelet {
  /** Starts the loops and static pods; resolves once they run (not: once registered). Rejects with KubeletFlagError on bad flags. */
  start(): Promise<void>;
  /**
   * Stops the kubelet and every container of the node. `graceful`: SIGTERM and up to 2 s for them to end (an
   * orderly machine shutdown); else everything is killed at once (power cut). Nothing is written to the API server.
   */
  stop(options: { graceful: boolean }): Promise<void>;
  readonly api: KubeletApi;
  /** Resolves when the Node was created or found; stays pending while no API server answers. */
  readonly registered: Promise<void>;
}
