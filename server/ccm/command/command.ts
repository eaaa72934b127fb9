import { errorMessage } from '#server/base';
import { type Process, readText } from '#server/node';
import type { CloudProvider } from '../contract.ts';
import { createKlog, type Klog } from '../klog.ts';
import { createCloudMetrics } from '../metrics.ts';
import { initCloudProvider } from '../providers/registry.ts';
import { type DialCluster, dialConfig, dialInCluster, dialServedCluster } from './clients.ts';
import { CONTROLLER_NAMES } from './controllers.ts';
import { FlagError, type ParsedFlags, parseFlags } from './flag-set.ts';
import { FLAGS, helpText, usageText } from './flags.ts';
import { VERSION } from './identity.ts';
import { runManager } from './manager.ts';
import { type CommandOptions, optionsFrom, validationError } from './options.ts';
import { serveHealth } from './serving.ts';

/** klog.Fatal's exit code. */
const FATAL = 255;
/** 128 + SIGKILL. */
const KILLED = 137;

/** Why the program ends early; what there was to say is printed already. */
class CommandExit extends Error {
  override readonly name = 'CommandExit';
  readonly code: number;
  constructor(code: number) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

/**
 * The cloud-controller-manager: flags, provider, health endpoint, election, controllers. Resolves with the exit code: 0
 * when a signal ended it, 1 for a wrong command line, an unusable kubeconfig or a lost lease, 255 when the cloud provider
 * cannot be made. Models k8s.io/cloud-provider/app (NewCloudControllerManagerCommand) and KubeVirt's main.go.
 */
export async function runCloudControllerManager(process: Process): Promise<number> {
  const stopping = new AbortController();
  process.onSignal(() => stopping.abort());
  process.signal.addEventListener('abort', () => stopping.abort(), { once: true });
  if (process.signal.aborted) return KILLED;
  try {
    const options = readCommandLine(process);
    const code = await run(process, options, stopping.signal);
    return process.signal.aborted ? KILLED : code;
  } catch (error) {
    if (error instanceof CommandExit) return error.code;
    throw error;
  }
}

function readCommandLine(process: Process): CommandOptions {
  const flags = parse(process);
  if (flags.given('help').at(-1) === 'true') {
    process.stdout.write(helpText());
    throw new CommandExit(0);
  }
  const surplus = flags.positional.filter((argument) => argument !== '');
  if (surplus.length > 0) {
    const got = flags.positional.map((argument) => JSON.stringify(argument)).join(' ');
    process.stderr.write(`Error: "cloud-controller-manager" does not take any arguments, got [${got}]\n`);
    throw new CommandExit(1);
  }
  if (flags.given('version').at(-1) === 'true') {
    process.stdout.write(`Kubernetes ${VERSION}\n`);
    throw new CommandExit(0);
  }
  return optionsFrom(flags);
}

function parse({ argv, stderr }: Process): ParsedFlags {
  try {
    const flags = parseFlags(FLAGS, argv.slice(1));
    for (const warning of flags.warnings) stderr.write(`${warning}\n`);
    return flags;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    stderr.write(`${usageText()}\nError: ${error.message}\n`);
    throw new CommandExit(1);
  }
}

async function run(process: Process, options: CommandOptions, signal: AbortSignal): Promise<number> {
  const { stderr, clock, ids } = process;
  const log = createKlog({ output: stderr, clock, verbosity: options.verbosity });
  /** What cobra's RunE returns: the error as it is, and as a line of the log. */
  const failed = (problem: string): CommandExit => {
    stderr.write(`${problem}\n`);
    log.errorS('run.go:72', problem, 'command failed');
    return new CommandExit(1);
  };
  const problem = validationError(options, CONTROLLER_NAMES);
  if (problem !== undefined) throw failed(problem);
  const metrics = createCloudMetrics();
  const started: string[] = options.leaderElection.leaderElect ? ['leaderElection'] : [];
  let dial: DialCluster;
  let serving: { close(): void } | undefined;
  try {
    dial = dialServedCluster(process, options, log);
    if (options.securePort !== 0) {
      const { network } = process;
      serving = serveHealth({ network, port: options.securePort, metrics, checks: () => started });
    }
  } catch (error) {
    throw failed(errorMessage(error));
  }
  try {
    const cloud = createCloud(process, options, log);
    if (serving) log.info('serving.go:53', `Serving insecurely on [::]:${options.securePort}`);
    return await runManager({
      options,
      cloud,
      dial,
      clock,
      ids,
      log,
      metrics,
      hostname: process.env['HOSTNAME'] ?? process.pod.name,
      onControllerStarted: (name) => started.push(name),
      signal,
    });
  } finally {
    serving?.close();
  }
}

/** Models cloudInitializer of KubeVirt's main.go. */
function createCloud(process: Process, options: CommandOptions, log: Klog): CloudProvider {
  const fatal = (source: string, text: string): CommandExit => {
    log.fatal(source, text);
    return new CommandExit(FATAL);
  };
  const { cloudConfig } = options;
  const config = cloudConfig === '' ? undefined : readText(process.files, cloudConfig);
  if (cloudConfig !== '' && config === undefined) {
    const why = `open ${cloudConfig}: no such file or directory`;
    throw fatal('plugins.go:116', `Couldn't open cloud provider configuration ${cloudConfig}: ${why}`);
  }
  let cloud: CloudProvider | undefined;
  try {
    cloud = initCloudProvider(options.cloudProvider, {
      config,
      readFile: (path) => readText(process.files, path),
      dial: (rest) => dialConfig(process, rest)(),
      inCluster: () => dialInCluster(process)(),
      log,
    });
  } catch (error) {
    throw fatal('main.go:71', `Cloud provider could not be initialized: ${errorMessage(error)}`);
  }
  if (!cloud) throw fatal('main.go:74', 'Cloud provider is nil');
  if (!cloud.hasClusterID) {
    if (!options.allowUntaggedCloud) {
      const text =
        'no ClusterID found.  A ClusterID is required for the cloud provider to function properly.  This check can be bypassed by setting the allow-untagged-cloud option';
      throw fatal('main.go:81', text);
    }
    const text =
      'detected a cluster without a ClusterID.  A ClusterID will be required in the future.  Please tag your cluster to avoid any future issues';
    log.warning('main.go:79', text);
  }
  return cloud;
}
