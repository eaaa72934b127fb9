import type { AppletContext } from '../applets/contract.ts';
import { appletNames, applets, isBounded, runApplet } from '../applets/index-of-applets.ts';
import type { Process, Program } from '../contract.ts';
import { FileError } from '../contract.ts';
import { createAsyncFiles } from '../files/async-files.ts';
import { createRootedFiles } from '../files/mounted-files.ts';
import { joinPath } from '../files/path.ts';
import { BrokenPipeError, createByteReader } from '../shell/byte-stream.ts';
import { createPuller, runInWorker, writeTo } from '../shell/worker-host.ts';

/** How often a long applet on the main thread lets others go on. */
const BREATHS = 32;

/** The small programs of an image: a shell, applets, `chroot`, under the directories given. `shells`: the shell's names. */
export function busyboxPrograms(options: {
  directories: readonly string[];
  shells: readonly string[];
  without?: readonly string[];
  extra?: Readonly<Record<string, Program>>;
}): Record<string, Program> {
  const programs: Record<string, Program> = {};
  const table: (readonly [string, string])[] = [];
  const names = appletNames.filter((name) => !options.without?.includes(name));
  const put = (name: string, program: Program): void => {
    for (const directory of options.directories) programs[`${directory}/${name}`] = program;
  };
  for (const name of names) {
    put(name, appletProgram(name, table));
    for (const directory of options.directories) table.push([`${directory}/${name}`, name]);
  }
  const shell: Program = {
    run: (process) => runInWorker(process, { mode: 'shell', applet: '', applets: table }),
  };
  for (const name of options.shells) put(name, shell);
  put('chroot', chroot);
  put('[', programs[`${options.directories[0]}/test`] ?? shell);
  for (const [name, program] of Object.entries(options.extra ?? {})) put(name, program);
  return programs;
}

function appletProgram(name: string, table: readonly (readonly [string, string])[]): Program {
  return {
    async run(process) {
      if (name === 'test' && process.argv[0]?.endsWith('['))
        return runBounded(name, { ...process, argv: process.argv.slice(0, -1) });
      if (isBounded([name, ...process.argv.slice(1)])) return runBounded(name, process);
      return runInWorker(process, { mode: 'applet', applet: name, applets: table });
    },
  };
}

/** Runs an applet on this thread: its work is bounded by the files of its container. */
async function runBounded(name: string, process: Process): Promise<number> {
  const applet = applets[name];
  if (!applet) return 127;
  const interrupted = new AbortController();
  const signal = AbortSignal.any([process.signal, interrupted.signal]);
  let ended: ((code: number) => void) | undefined;
  const bySignal = new Promise<number>((resolve) => {
    ended = resolve;
  });
  process.onSignal((received) => {
    // Process 1 does not get what it has no handler for.
    if (process.init) return;
    interrupted.abort();
    ended?.(received === 'SIGINT' ? 130 : received === 'SIGHUP' ? 129 : 143);
  });
  const running = runApplet(applet, contextOf(process, signal, [name, ...process.argv.slice(1)]));
  running.catch(() => undefined);
  return Promise.race([running, bySignal]);
}

function contextOf(process: Process, signal: AbortSignal, argv: readonly string[]): AppletContext {
  let breaths = 0;
  const writer = (stream: Process['stdout']): AppletContext['stdout'] => ({
    async write(data) {
      if (!(await writeTo(stream, data, signal))) throw new BrokenPipeError('Broken pipe');
    },
  });
  return {
    argv,
    env: process.env,
    cwd: process.cwd,
    stdin: createByteReader(createPuller(process.stdin)),
    stdout: writer(process.stdout),
    stderr: writer(process.stderr),
    files: createAsyncFiles(process.files),
    signal,
    isTerminal: process.tty !== undefined,
    now: async () => process.clock.now(),
    sleep: (milliseconds) => process.clock.sleep(milliseconds, signal),
    run: async (words) => (await process.spawn(words, { signal })) ?? 127,
    async breathe() {
      breaths += 1;
      if (breaths % BREATHS === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    },
    size: process.tty?.size ?? { width: 80, height: 24 },
  };
}

/** `chroot DIR [COMMAND]`: a program of the other root, by default its shell. */
const chroot: Program = {
  async run(process) {
    const [root, ...given] = process.argv.slice(1);
    if (root === undefined) {
      process.stderr.write('chroot: missing operand\n');
      return 125;
    }
    const command = given.length > 0 ? given : ['/bin/sh', '-i'];
    try {
      const files = createRootedFiles(process.files, joinPath(process.cwd, root));
      const end = await process.spawn(command, {
        files,
        cwd: '/',
        env: { ...process.env, PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      });
      if (end !== undefined) return end;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      process.stderr.write(`chroot: can't change root directory to '${root}': No such file or directory\n`);
      return 125;
    }
    process.stderr.write(`chroot: can't execute '${command[0]}': No such file or directory\n`);
    return 127;
  },
};
