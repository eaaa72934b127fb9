import type { Process, Program } from '#server/node';

/** What virt-handler wants to hear from the virt-launcher of a VMI. */
export interface LauncherListener {
  /** The pod is asked to end (SIGTERM): shut the guest down. False when there is no guest to wait for. */
  terminating(vmiUid: string): boolean;
  /** The pod was killed: the guest is gone. */
  killed(vmiUid: string): void;
}

/** The meeting point of virt-launcher containers and virt-handler; a socket on the node in a real cluster. */
export interface VirtLaunchers {
  /** The program of the virt-launcher image (`/usr/bin/virt-launcher-monitor`). */
  readonly program: Program;
  listen(listener: LauncherListener): { stop(): void };
  /** The guest is off: its launcher exits with this code. No launcher: nothing happens. */
  end(vmiUid: string, exitCode: number): void;
}

function flag(argv: readonly string[], name: string): string {
  const index = argv.indexOf(name);
  return (index >= 0 && argv[index + 1]) || '';
}

/**
 * Makes a meeting point. Its program runs until its VMI's guest is off, or until SIGTERM when there is no guest.
 * Models kubevirt cmd/virt-launcher-monitor and cmd/virt-launcher.
 */
export function createVirtLaunchers(): VirtLaunchers {
  const running = new Map<string, (exitCode: number) => void>();
  let listener: LauncherListener | undefined;

  const run = (process: Process): Promise<number> => {
    const uid = flag(process.argv, '--uid');
    const say = (msg: string): void => {
      const line = {
        component: 'virt-launcher',
        kind: '',
        level: 'info',
        msg,
        name: flag(process.argv, '--name'),
        namespace: flag(process.argv, '--namespace'),
        timestamp: new Date(process.clock.now()).toISOString(),
        uid,
      };
      process.stdout.write(`${JSON.stringify(line)}\n`);
    };
    return new Promise((resolve) => {
      const done = (exitCode: number): void => {
        if (running.get(uid) === done) running.delete(uid);
        resolve(exitCode);
      };
      running.set(uid, done);
      say(
        `Watchdog file created for VMI ${flag(process.argv, '--namespace')}_${flag(process.argv, '--name')}`,
      );
      process.onSignal((signal) => {
        say(`Received signal ${signal}`);
        if (!listener?.terminating(uid)) done(0);
      });
      process.signal.addEventListener(
        'abort',
        () => {
          listener?.killed(uid);
          done(137);
        },
        { once: true },
      );
    });
  };

  return {
    program: { run },
    listen(next) {
      listener = next;
      return {
        stop() {
          if (listener === next) listener = undefined;
        },
      };
    },
    end: (vmiUid, exitCode) => running.get(vmiUid)?.(exitCode),
  };
}
