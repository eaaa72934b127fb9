import { errorMessage, OperationalError } from '#server/base';
import { type Node, nodes } from '#server/kube';
import { FileError, type FileSystem, type Process, type Program } from '../contract.ts';
import { readText } from '../files/mounted-files.ts';
import { parentPath } from '../files/path.ts';
import type { PluginRegistration } from '../kubelet/plugin-registry.ts';
import { serveHttp, untilStopped } from './http-server.ts';
import { inClusterConfig } from './in-cluster.ts';

const DRIVER = 'csi.kubevirt.io';
const CLUSTER_NAMESPACE = 'cluster.x-k8s.io/cluster-namespace';
const PROVIDER = /^kubevirt:\/\/(.+)$/;

/** A flag's value: `--name=value`, `--name value`, `-name=value`. */
function flag(process: Process, name: string): string | undefined {
  for (const [index, arg] of process.argv.entries()) {
    const match = new RegExp(`^--?${name}(?:=(.*))?$`, 's').exec(arg);
    if (match) return match[1] ?? process.argv[index + 1];
  }
  return undefined;
}

function socketPath(process: Process, name: string, fallback: string): string {
  return (flag(process, name) ?? fallback).replace(/^unix:\/*/, '/');
}

/** A driver's socket is a file that says who answers on it: this lab's sockets carry no gRPC. */
interface SocketContent {
  name: string;
  nodeId: string;
}

function removeQuietly(files: FileSystem, path: string): void {
  try {
    files.remove(path);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
}

/**
 * kubevirt-csi-driver: learns its node id from the Node and offers it on the CSI socket. Fails at start, as upstream,
 * while the Node has no providerID or its annotation. As a controller it idles: volumes are not provisioned here.
 * Models kubevirt/csi-driver cmd/kubevirt-csi-driver resolveNodeID.
 */
export const kubevirtCsiDriver: Program = {
  async run(process) {
    const nodeName = flag(process, 'node-name') ?? '';
    if (nodeName === '' || flag(process, 'run-node-service') === 'false') {
      await untilStopped(process);
      return 0;
    }
    const client = process.dialer.dial(inClusterConfig(process), { userAgent: 'kubevirt-csi-driver' });
    const log = (level: string, text: string): void => {
      const now = new Date(process.clock.now()).toISOString();
      process.stderr.write(
        `${level}${now.slice(5, 7)}${now.slice(8, 10)} ${now.slice(11, 23)}000       1 kubevirt-csi-driver.go:1] ${text}\n`,
      );
    };
    let nodeId: string;
    try {
      nodeId = resolveNodeId(await client.get(nodes, { name: nodeName }));
    } catch (error) {
      log('F', errorMessage(error));
      return 1;
    }
    const path = socketPath(process, 'endpoint', '/csi/csi.sock');
    const content: SocketContent = { name: DRIVER, nodeId };
    process.files.mkdir(parentPath(path), { recursive: true });
    process.files.writeFile(path, JSON.stringify(content));
    log('I', `Driver: ${DRIVER} Node ID: ${nodeId}`);
    try {
      await untilStopped(process);
    } finally {
      removeQuietly(process.files, path);
    }
    return 0;
  },
};

function resolveNodeId(node: Node): string {
  const annotations = node.metadata.annotations ?? {};
  const provided = PROVIDER.exec(node.spec?.providerID ?? '')?.[1];
  const name = provided ?? annotations['csi.kubevirt.io/infra-vm-name'];
  const namespace = provided
    ? annotations[CLUSTER_NAMESPACE]
    : annotations['csi.kubevirt.io/infra-vm-namespace'];
  if (name && namespace) return `${namespace}/${name}`;
  throw new OperationalError(
    `Failed to initialize driver: failed to configure node service: failed to resolve infra VM for node "${node.metadata.name}": vmName or vmNamespace not found. ` +
      `Ensure the node has a valid providerID (kubevirt://) with annotation '${CLUSTER_NAMESPACE}', or set annotations 'csi.kubevirt.io/infra-vm-name' and 'csi.kubevirt.io/infra-vm-namespace' on the node. ` +
      'After setting the annotations, restart the kubevirt-csi-node pod on this node for the changes to take effect',
  );
}

function readSocket(files: FileSystem, path: string): SocketContent | undefined {
  const text = readText(files, path);
  if (!text) return undefined;
  try {
    const value = JSON.parse(text) as Partial<SocketContent>;
    return value.name && value.nodeId ? { name: value.name, nodeId: value.nodeId } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** node-driver-registrar: once the driver answers, registers it with the kubelet, and takes it back when it ends. */
export const nodeDriverRegistrar: Program = {
  async run(process) {
    const path = socketPath(process, 'csi-address', '/run/csi/socket');
    const directory = flag(process, 'plugin-registration-path') ?? '/registration';
    let registered: string | undefined;
    const sync = (): void => {
      const driver = readSocket(process.files, path);
      if (!driver) return;
      const at = `${directory}/${driver.name}-reg.sock`;
      const registration: PluginRegistration = {
        type: 'CSIPlugin',
        name: driver.name,
        nodeId: driver.nodeId,
      };
      const text = JSON.stringify(registration);
      if (registered === at && readText(process.files, at) === text) return;
      process.files.writeFile(at, text);
      registered = at;
      process.stderr.write(`Registration Server started at: ${at}\n`);
    };
    const watch = process.files.watch(parentPath(path), sync);
    sync();
    try {
      await untilStopped(process);
    } finally {
      watch.stop();
      if (registered !== undefined) removeQuietly(process.files, registered);
    }
    return 0;
  },
};

/** livenessprobe: `/healthz` says whether the driver answers on its socket. */
export const csiLivenessProbe: Program = {
  async run(process) {
    const path = socketPath(process, 'csi-address', '/run/csi/socket');
    const health = (): { status: number; body: string } =>
      readSocket(process.files, path)
        ? { status: 200, body: 'ok' }
        : { status: 500, body: 'driver is not ready' };
    const listener = serveHttp(
      process.network,
      Number(flag(process, 'health-port') ?? 9808),
      (_request, response) => {
        const verdict = health();
        response.writeHead(verdict.status);
        response.end(verdict.body);
      },
      { health },
    );
    await untilStopped(process);
    listener.close();
    return 0;
  },
};
