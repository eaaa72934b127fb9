import { type Clock, createDisposables, errorMessage, type Ids } from '#server/base';
import {
  createEventRecorder,
  createInformerFactory,
  type EventRecorder,
  type LeaderElection,
} from '#server/client';
import type { CloudProvider } from '../contract.ts';
import type { CloudController, CloudControllerContext } from '../controller.ts';
import { type Klog, klogLogger } from '../klog.ts';
import type { CloudMetrics } from '../metrics.ts';
import { waitForApiServer } from './api-health.ts';
import type { DialCluster } from './clients.ts';
import { CONTROLLERS, type ControllerRow } from './controllers.ts';
import { standForElection } from './election.ts';
import { COMPONENT, VERSION } from './identity.ts';
import { type CommandOptions, isControllerEnabled } from './options.ts';
import { loggedRecorder } from './recorder.ts';

export interface ManagerOptions {
  options: CommandOptions;
  cloud: CloudProvider;
  /** The cluster that is served. */
  dial: DialCluster;
  clock: Clock;
  ids: Ids;
  log: Klog;
  metrics: CloudMetrics;
  hostname: string;
  /** Told of each controller that runs, for /healthz. */
  onControllerStarted: (name: string) => void;
  /** The program ends: no more lines, nothing new. */
  signal: AbortSignal;
}

/** How the program ends: an exit code. */
type End = (code: number) => void;

/** klog.Fatal's exit code. */
const FATAL = 255;

/**
 * Runs the cloud controllers while this process holds the lease, until `signal` aborts (the lease is left to run out) or
 * the lease is lost; resolves with the exit code. Nothing of it runs afterwards.
 * Models Run of k8s.io/cloud-provider/app/controllermanager.go.
 */
export async function runManager(manager: ManagerOptions): Promise<number> {
  const { options, dial, clock, log, signal } = manager;
  const running = createDisposables();
  let over = false;
  let resolveEnd: End = () => undefined;
  const ended = new Promise<number>((resolve) => {
    resolveEnd = resolve;
  });
  const end: End = (code) => {
    over = true;
    resolveEnd(code);
  };
  signal.addEventListener('abort', () => end(0), { once: true });
  if (signal.aborted) end(0);
  log.info('controllermanager.go:160', `Version: ${VERSION}`);
  tellMissing(manager);
  const recorder = recorderOf(manager, dial(COMPONENT), COMPONENT);
  running.defer(() => recorder.stop());
  try {
    // A lock that finds no API server waits for seconds; a look at its health is over in the moment it answers.
    await waitForApiServer(dial('shared-informers'), clock, signal);
    const defer = (stop: () => void | Promise<void>): void => running.defer(stop);
    const lead = (term: AbortSignal): Promise<void> => startControllers(manager, term, defer, end);
    if (options.leaderElection.leaderElect) {
      const lost = (): void => {
        if (!over) loseLease(manager, end);
      };
      const election = elect(manager, recorder, lead, lost);
      running.defer(async () => {
        recorder.stop();
        await election.stop();
      });
    } else {
      void lead(signal);
    }
    return await ended;
  } catch (error) {
    if (signal.aborted) return 0;
    throw error;
  } finally {
    await running.dispose();
  }
}

/** Stands for the lease; `lead` begins when it is had, `lost` is told when it is no more. */
function elect(
  { options, dial, clock, ids, log, metrics, hostname }: ManagerOptions,
  recorder: EventRecorder,
  lead: (term: AbortSignal) => Promise<void>,
  lost: () => void,
): LeaderElection {
  const settings = options.leaderElection;
  return standForElection({
    client: dial('leader-election'),
    clock,
    ids,
    log,
    recorder,
    identity: `${hostname}_${ids.uid()}`,
    settings,
    async onStarted(term) {
      metrics.leading(settings.resourceName, true);
      await lead(term);
    },
    onStopped() {
      metrics.leading(settings.resourceName, false);
      lost();
    },
  });
}

function loseLease({ options, log }: ManagerOptions, end: End): void {
  const { resourceNamespace, resourceName } = options.leaderElection;
  const why = 'context deadline exceeded';
  log.info('leaderelection.go:297', `failed to renew lease ${resourceNamespace}/${resourceName}: ${why}`);
  log.errorS('controllermanager.go:265', undefined, 'leaderelection lost');
  end(1);
}

/** Says which controllers somebody may wait for in vain. */
function tellMissing({ log, options }: ManagerOptions): void {
  const missing = CONTROLLERS.filter(
    ({ start, name }) => !start && isControllerEnabled(name, options.controllers),
  );
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => `"${name}"`).join(', ');
  log.warning(
    'controllers.ts:1',
    `This version does not have these controllers and does not start them: ${names}`,
  );
}

/** Starts what is enabled. Whatever keeps that from happening ends the program. */
async function startControllers(
  manager: ManagerOptions,
  term: AbortSignal,
  defer: (stop: () => void | Promise<void>) => void,
  end: End,
): Promise<void> {
  const { clock, dial, log, cloud, options } = manager;
  try {
    const client = dial('shared-informers');
    const problem = await waitForApiServer(client, clock, term);
    if (problem !== undefined) {
      const why = `failed to wait for apiserver being healthy: ${problem}`;
      log.fatal('controllermanager.go:212', `error building controller context: ${why}`);
      end(FATAL);
      return;
    }
    const informers = createInformerFactory({ client, clock, log: klogLogger(log, 'reflector.go:205') });
    defer(() => informers.stop());
    cloud.initialize?.(term);
    cloud.setInformers?.(informers);
    for (const row of CONTROLLERS) {
      if (!isControllerEnabled(row.name, options.controllers)) {
        log.warning('controllermanager.go:306', `"${row.name}" is disabled`);
        continue;
      }
      const controller = startOne(manager, row, contextFor(manager, row, informers, defer));
      if (!controller) continue;
      defer(() => controller.stop());
      if (options.controllerStartInterval > 0) await clock.sleep(options.controllerStartInterval, term);
    }
    informers.start();
  } catch (error) {
    if (term.aborted) return;
    log.fatal('controllermanager.go:215', `error running controllers: ${errorMessage(error)}`);
    end(FATAL);
  }
}

function startOne(
  { log, options, onControllerStarted }: ManagerOptions,
  row: ControllerRow,
  context: CloudControllerContext,
): CloudController | undefined {
  if (log.enabled(1)) log.info('controllermanager.go:310', `Starting "${row.name}"`);
  const controller = row.start?.(context, options);
  if (!controller) {
    log.warning('controllermanager.go:317', `Skipping "${row.name}"`);
    return undefined;
  }
  log.info('controllermanager.go:329', `Started "${row.name}"`);
  onControllerStarted(row.name);
  return controller;
}

function contextFor(
  manager: ManagerOptions,
  row: ControllerRow,
  informers: CloudControllerContext['informers'],
  defer: (stop: () => void) => void,
): CloudControllerContext {
  const { clock, ids, log, metrics, cloud, dial } = manager;
  const client = dial(row.clientName);
  return {
    client,
    informers,
    cloud,
    clock,
    ids,
    log,
    metrics,
    recorder(component) {
      const recorder = recorderOf(manager, client, component);
      defer(() => recorder.stop());
      return recorder;
    },
  };
}

function recorderOf(
  { clock, ids, log }: ManagerOptions,
  client: ReturnType<DialCluster>,
  component: string,
): EventRecorder {
  const recorder = createEventRecorder({
    client,
    component,
    clock,
    ids,
    log: klogLogger(log, 'event.go:368'),
  });
  return loggedRecorder(recorder, log);
}
