import { FileError, type Program } from '../contract.ts';
import { serveHttp, untilStopped } from './http-server.ts';

const CONF_NAME = '05-cilium.conflist';
const CONF = `${JSON.stringify({ cniVersion: '0.3.1', name: 'cilium', plugins: [{ type: 'cilium-cni', 'enable-debug': false, 'log-file': '/var/run/cilium/cilium-cni.log' }] }, undefined, 2)}\n`;
/** Where the agent's DaemonSet mounts the machine's CNI directory. */
const DIRECTORIES = ['/host/etc/cni/net.d', '/etc/cni/net.d'];
const HEALTH_PORT = 9879;

/**
 * cilium-agent: puts the CNI configuration down, which is what makes the machine's network ready, and answers its health
 * port. Routing itself is the simulated network's.
 */
export const ciliumAgent: Program = {
  async run(process) {
    const health = (): { status: number; body: string } => ({ status: 200, body: 'ok' });
    const log = (message: string): void =>
      void process.stdout.write(
        `time=${new Date(process.clock.now()).toISOString()} level=info msg="${message}" module=agent\n`,
      );
    log('Starting Cilium daemon');
    const listener = serveHttp(process.network, HEALTH_PORT, (_request, response) => response.end('ok'), {
      ip: '127.0.0.1',
      health,
    });
    for (const directory of DIRECTORIES) {
      if (!process.files.exists(directory)) continue;
      try {
        process.files.writeFile(`${directory}/${CONF_NAME}`, CONF);
        log(`Generating CNI configuration file with mode none`);
        break;
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        log(`Unable to write CNI configuration file to disk: ${error.code}`);
      }
    }
    log('Daemon initialization completed');
    await untilStopped(process);
    listener.close();
    return 0;
  },
};

/** cilium-operator: nothing to operate here; it runs and is healthy. */
export const ciliumOperator: Program = {
  async run(process) {
    const health = (): { status: number; body: string } => ({ status: 200, body: 'ok' });
    const listener = serveHttp(process.network, 9234, (_request, response) => response.end('ok'), { health });
    await untilStopped(process);
    listener.close();
    return 0;
  },
};
