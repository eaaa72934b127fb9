import { errorMessage } from '#server/base';
import { type Container, formatTime, type Pod } from '#server/kube';
import type { FileSystem } from '../contract.ts';
import type { AttachedNamespace } from '../network/contract.ts';
import { startContainer } from '../runtime/container.ts';
import type { ProcessWorld } from '../runtime/process.ts';
import { DEFAULT_PATH, ExecError } from '../runtime/program-lookup.ts';
import { backoffLeft, type ContainerRecord, formatDuration, nextBackoff } from './container-record.ts';
import { expandReferences } from './expansion.ts';
import { ImagePullError, type PulledImage } from './images.ts';
import type { PodContext } from './pod-context.ts';
import { ContainerConfigError, makeEnvironment } from './pod-env.ts';
import { containerFiles, type PodNames } from './pod-files.ts';
import type { PodVolumes } from './pod-volumes.ts';

/** How long ErrImagePull is shown before ImagePullBackOff. */
const PULL_ERROR_SHOWN = 3_000;
/** How long RunContainerError is shown before the next try. */
const START_ERROR_SHOWN = 1_000;

/** What starting a container of one pod needs. */
export interface StartOptions {
  readonly pod: Pod;
  readonly record: ContainerRecord;
  readonly volumes: PodVolumes;
  readonly names: PodNames;
  readonly network: AttachedNamespace;
  readonly podIPs: readonly string[];
  readonly isStatic: boolean;
  readonly signal: AbortSignal;
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** What is waiting changed: show it. */
  readonly changed: () => void;
}

/** `started`, or milliseconds until it is worth another try. */
export type StartResult = 'started' | { retryAfter: number };

/**
 * Pulls, configures, creates and starts one container; leaves the reason in its record when it cannot.
 * Models pkg/kubelet/kuberuntime startContainer.
 */
export async function startOne(context: PodContext, options: StartOptions): Promise<StartResult> {
  const { record } = options;
  const image = await ensureImage(context, options);
  if ('retryAfter' in image) return image;
  record.image = image;
  options.signal.throwIfAborted();
  let prepared: { env: Record<string, string>; files: FileSystem; argv: string[] };
  try {
    prepared = await prepare(context, options, image);
  } catch (error) {
    if (!(error instanceof ContainerConfigError)) throw error;
    record.state = { waiting: { reason: 'CreateContainerConfigError', message: error.message } };
    options.event('Warning', 'Failed', `Error: ${error.message}`);
    return { retryAfter: 10_000 };
  }
  options.signal.throwIfAborted();
  return run(context, options, prepared);
}

async function prepare(
  context: PodContext,
  options: StartOptions,
  image: PulledImage,
): Promise<{ env: Record<string, string>; files: FileSystem; argv: string[] }> {
  const { pod, record } = options;
  const { spec } = record;
  checkNonRoot(pod, spec, image);
  // A static pod starts without an API server; everybody else's environment holds the services.
  if (!options.isStatic) await context.servicesKnown;
  const env = await makeEnvironment({
    pod,
    container: spec,
    image: { PATH: DEFAULT_PATH, HOSTNAME: options.names.hostname, ...image.image.env },
    services: context.services(),
    objects: context.objects,
    node: { podIPs: options.podIPs, hostIP: context.hostIPs()[0], nodeName: context.nodeName },
    allocatable: context.node()?.status?.allocatable ?? {},
  });
  if (env.HOME === undefined) env.HOME = '/root';
  const expand = (text: string): string => expandReferences(text, env);
  const argv = commandLine(spec, image, expand);
  const files = containerFiles({
    container: spec,
    image: image.image,
    argv,
    machine: context.node()?.status?.nodeInfo,
    names: options.names,
    volumes: options.volumes,
    env,
    expand,
    clock: context.clock,
  });
  return { env, files, argv };
}

/** `command` replaces the entry point and with it the image's arguments; `args` only those. */
function commandLine(spec: Container, image: PulledImage, expand: (text: string) => string): string[] {
  const command = spec.command && spec.command.length > 0 ? spec.command.map(expand) : undefined;
  const args = spec.args && spec.args.length > 0 ? spec.args.map(expand) : undefined;
  if (command) return [...command, ...(args ?? [])];
  return [...image.image.entrypoint, ...(args ?? image.image.command)];
}

function checkNonRoot(pod: Pod, spec: Container, image: PulledImage): void {
  const nonRoot = spec.securityContext?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot;
  const user = spec.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  if (!nonRoot || (user ?? image.image.user ?? 0) !== 0) return;
  const why =
    user === 0
      ? "container's runAsUser breaks non-root policy"
      : 'container has runAsNonRoot and image will run as root';
  throw new ContainerConfigError(
    `${why} (pod: "${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})", container: ${spec.name})`,
  );
}

function run(
  context: PodContext,
  options: StartOptions,
  prepared: { env: Record<string, string>; files: FileSystem; argv: string[] },
): StartResult {
  const { pod, record } = options;
  const { clock, ids } = context;
  const { spec } = record;
  const world: ProcessWorld = {
    programs: record.image?.image.programs ?? {},
    hostPrograms: context.hostPrograms,
    files: prepared.files,
    network: options.network,
    clock,
    ids,
    dialer: context.dialerFor({
      namespace: pod.metadata.namespace ?? 'default',
      name: pod.metadata.name,
      uid: pod.metadata.uid ?? '',
      serviceAccount: pod.spec.serviceAccountName ?? '',
      nodeName: context.nodeName,
    }),
    pod: {
      namespace: pod.metadata.namespace ?? 'default',
      name: pod.metadata.name,
      uid: pod.metadata.uid ?? '',
      nodeName: context.nodeName,
    },
  };
  const containerID = `containerd://${Buffer.from(ids.bytes(32)).toString('hex')}`;
  if (record.everStarted) record.restartCount += 1;
  options.event('Normal', 'Created', 'Container created');
  record.previousLog = record.log;
  try {
    record.run = startContainer({
      world,
      argv: prepared.argv,
      env: prepared.env,
      cwd: spec.workingDir || record.image?.image.workingDir || '/',
      stdin: spec.stdin ?? false,
      stdinOnce: spec.stdinOnce ?? false,
      tty: spec.tty ?? false,
      clock,
    });
  } catch (error) {
    if (!(error instanceof ExecError)) throw error;
    const message = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: ${error.message}`;
    options.event('Warning', 'Failed', `Error: ${message}`);
    record.everStarted = true;
    record.containerID = containerID;
    record.lastState = {
      exitCode: 128,
      reason: 'StartError',
      message,
      startedAt: '1970-01-01T00:00:00Z',
      finishedAt: formatTime(clock.now()),
      containerID,
    };
    record.state = { waiting: { reason: 'RunContainerError', message } };
    return { retryAfter: START_ERROR_SHOWN };
  }
  record.containerID = containerID;
  record.everStarted = true;
  record.log = record.run.log;
  record.files = prepared.files;
  if (record.state.terminated) record.lastState = record.state.terminated;
  record.startedAt = formatTime(clock.now());
  record.state = { running: { startedAt: record.startedAt } };
  options.event('Normal', 'Started', 'Container started');
  return 'started';
}

async function ensureImage(
  context: PodContext,
  options: StartOptions,
): Promise<PulledImage | { retryAfter: number }> {
  const { record } = options;
  const name = record.spec.image ?? '';
  const { images, clock } = context;
  const wait = (reason: string, message: string): void => {
    record.state = { waiting: { reason, message } };
    options.changed();
  };
  if (!images.valid(name)) {
    const message = `Failed to apply default image tag "${name}": couldn't parse image name "${name}": invalid reference format`;
    if (record.pull.reason !== 'InvalidImageName') {
      options.event('Warning', 'InspectFailed', message);
      options.event('Warning', 'Failed', 'Error: InvalidImageName');
    }
    record.pull.reason = 'InvalidImageName';
    wait('InvalidImageName', message);
    return { retryAfter: 60_000 };
  }
  const present = images.present(name);
  const policy = record.spec.imagePullPolicy ?? 'IfNotPresent';
  if (present && policy !== 'Always') {
    options.event(
      'Normal',
      'Pulled',
      `Container image "${name}" already present on machine and can be accessed by the pod`,
    );
    return present;
  }
  if (policy === 'Never') {
    const message = `Container image "${name}" is not present with pull policy of Never`;
    options.event('Warning', 'ErrImageNeverPull', message);
    options.event('Warning', 'Failed', 'Error: ErrImageNeverPull');
    wait('ErrImageNeverPull', message);
    return { retryAfter: 60_000 };
  }
  const now = clock.now();
  const left = backoffLeft(record.pull, record.pull.since, now);
  if (left > 0) {
    const shown = record.pull.since + PULL_ERROR_SHOWN - now;
    if (record.state.waiting?.reason === 'ErrImagePull' && shown > 0) return { retryAfter: shown };
    options.event('Normal', 'BackOff', `Back-off pulling image "${name}"`);
    options.event('Warning', 'Failed', 'Error: ImagePullBackOff');
    wait('ImagePullBackOff', `Back-off pulling image "${name}": ErrImagePull: ${record.pull.message}`);
    return { retryAfter: left };
  }
  options.event('Normal', 'Pulling', `Pulling image "${name}"`);
  try {
    const pulled = await images.pull(name, options.signal);
    const took = formatDuration(clock.now() - now);
    options.event(
      'Normal',
      'Pulled',
      `Successfully pulled image "${name}" in ${took} (${took} including waiting). Image size: ${pulled.image.size} bytes.`,
    );
    record.pull = { delay: 0, since: 0, message: '', reason: '' };
    return pulled;
  } catch (error) {
    if (!(error instanceof ImagePullError)) throw error;
    const message = errorMessage(error);
    options.event('Warning', 'Failed', `Failed to pull image "${name}": ${message}`);
    options.event('Warning', 'Failed', 'Error: ErrImagePull');
    record.pull.message = message;
    nextBackoff(record.pull, clock.now(), clock.now());
    wait('ErrImagePull', message);
    return { retryAfter: PULL_ERROR_SHOWN };
  }
}
