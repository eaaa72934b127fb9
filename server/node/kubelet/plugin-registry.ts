import { type Clock, errorMessage, type Logger } from '#server/base';
import type { Client } from '#server/client';
import {
  type CSINode,
  csiNodes,
  deepEqual,
  isAlreadyExists,
  isNotFound,
  type Node,
  nodes,
} from '#server/kube';
import type { FileSystem } from '../contract.ts';
import { readText } from '../files/mounted-files.ts';
import { untilDone } from './retry.ts';

/** Where node-driver-registrar puts its socket on the machine. */
export const PLUGIN_DIRECTORY = '/var/lib/kubelet/plugins_registry';
export const NODE_ID_ANNOTATION = 'csi.volume.kubernetes.io/nodeid';
const MAX_PLUGINS = 16;
const MIGRATED_ANNOTATION = 'storage.alpha.kubernetes.io/migrated-plugins';
const MIGRATED_PLUGINS =
  'kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume';

/**
 * What a registration socket answers to the kubelet's GetInfo and the driver's NodeGetInfo; here it is the file's content,
 * because unix sockets of the simulated machine carry no gRPC.
 */
export interface PluginRegistration {
  readonly type: 'CSIPlugin';
  readonly name: string;
  readonly nodeId: string;
  readonly topologyKeys?: readonly string[];
}

/**
 * Registers the CSI drivers whose sockets are in plugins_registry: CSINode and the node's annotation follow them.
 * Models pkg/kubelet/pluginmanager and pkg/volume/csi/nodeinfomanager.
 */
export function createPluginRegistry(options: {
  nodeName: string;
  client: Client;
  files: FileSystem;
  node: () => Node | undefined;
  clock: Clock;
  log: Logger;
}): { start(): void; wake(): void; stop(): void } {
  const { nodeName, client, files, clock, log } = options;
  const stopping = new AbortController();
  let watch: { stop(): void } | undefined;
  let working: Promise<unknown> | undefined;
  let again = false;

  const registrations = (): PluginRegistration[] => {
    if (!files.exists(PLUGIN_DIRECTORY)) return [];
    return files
      .readdir(PLUGIN_DIRECTORY)
      .filter((name) => name.endsWith('.sock'))
      .slice(0, MAX_PLUGINS)
      .flatMap((name) => parseRegistration(readText(files, `${PLUGIN_DIRECTORY}/${name}`)));
  };
  const sync = async (): Promise<void> => {
    const node = options.node();
    if (!node) return;
    const plugins = registrations();
    const ids = Object.fromEntries(plugins.map((plugin) => [plugin.name, plugin.nodeId]));
    const annotation = plugins.length > 0 ? JSON.stringify(ids) : null;
    if ((node.metadata.annotations?.[NODE_ID_ANNOTATION] ?? null) !== annotation) {
      await client.patch(
        nodes,
        { name: nodeName },
        { type: 'strategic', body: { metadata: { annotations: { [NODE_ID_ANNOTATION]: annotation } } } },
      );
    }
    await syncCsiNode(node, plugins);
  };
  const syncCsiNode = async (node: Node, plugins: readonly PluginRegistration[]): Promise<void> => {
    const drivers = plugins.map((plugin) => ({
      name: plugin.name,
      nodeID: plugin.nodeId,
      topologyKeys: [...(plugin.topologyKeys ?? [])],
    }));
    let existing: CSINode | undefined;
    try {
      existing = await client.get(csiNodes, { name: nodeName });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.metadata.uid ?? '' };
    if (existing) {
      // Empty lists are stored as null, of drivers as of their keys.
      const known = (existing.spec.drivers ?? []).map(({ name, nodeID, topologyKeys }) => ({
        name,
        nodeID,
        topologyKeys: topologyKeys ?? [],
      }));
      if (!deepEqual(known, drivers))
        await client.update(csiNodes, { ...existing, spec: { ...existing.spec, drivers } });
      return;
    }
    try {
      await client.create(csiNodes, {
        metadata: {
          name: nodeName,
          ownerReferences: [owner],
          annotations: { [MIGRATED_ANNOTATION]: MIGRATED_PLUGINS },
        },
        spec: { drivers },
      });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      again = true;
    }
  };
  const wake = (): void => {
    again = true;
    if (working || stopping.signal.aborted) return;
    working = (async () => {
      while (again && !stopping.signal.aborted) {
        again = false;
        await untilDone(clock, stopping.signal, sync, (error) =>
          log.debug({ node: nodeName, err: errorMessage(error) }, 'CSI plugins not registered'),
        );
      }
    })().finally(() => {
      working = undefined;
    });
  };
  return {
    start() {
      watch = files.watch(PLUGIN_DIRECTORY, wake);
      wake();
    },
    wake,
    stop() {
      stopping.abort();
      watch?.stop();
    },
  };
}

function parseRegistration(text: string | undefined): PluginRegistration[] {
  if (!text) return [];
  try {
    const value = JSON.parse(text) as Partial<PluginRegistration>;
    if (value.type !== 'CSIPlugin' || !value.name || !value.nodeId) return [];
    return [
      { type: 'CSIPlugin', name: value.name, nodeId: value.nodeId, topologyKeys: value.topologyKeys ?? [] },
    ];
  } catch (error) {
    // Half a file: the rest brings another change.
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}
