import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { OperationalError } from '#server/base';
import { report, type StartOptions } from './messages.ts';

export type ClusterProcessOptions = StartOptions;

export interface ClusterProcess {
  readonly pid: number;
  /** `https://127.0.0.1:6443`. */
  readonly url: string;
  /** Cluster-admin of the management cluster. */
  readonly adminKubeconfig: string;
  /** Resolves with a sentence when the process has ended, whoever ended it. */
  readonly ended: Promise<string>;
  /** Ends the process in order; resolves when it is gone. */
  stop(): Promise<void>;
}

/** The program of the cluster process that lies beside this code: TypeScript, or built by scripts/build.mjs. */
const PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url));

/**
 * Starts the cluster process and waits until its management cluster serves. `program` is another build's main file.
 * Rejects with OperationalError when it cannot start. The child ends by itself when this process does, however that
 * happens.
 */
export function startClusterProcess(
  options: ClusterProcessOptions,
  program: string = PROGRAM,
): Promise<ClusterProcess> {
  const runner = program.endsWith('.ts') ? ['--import', 'tsx'] : ['--enable-source-maps'];
  const child = fork(program, [JSON.stringify(options)], {
    execArgv: [...runner, '--max-semi-space-size=32'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `ended by ${signal}` : `ended with code ${code}`));
  });
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect();
    await ended;
  };
  return new Promise((resolve, reject) => {
    child.once('error', (cause) =>
      reject(new OperationalError('the cluster process cannot be started', { cause })),
    );
    void ended.then((how) => reject(new OperationalError(`the cluster process ${how} before it was ready`)));
    child.on('message', (message) => {
      const parsed = report.parse(message);
      if (parsed.type === 'failed') {
        reject(
          new OperationalError(parsed.message, parsed.remedy === undefined ? {} : { remedy: parsed.remedy }),
        );
      } else {
        resolve({ pid: parsed.pid, url: parsed.url, adminKubeconfig: parsed.adminKubeconfig, ended, stop });
      }
    });
  });
}
