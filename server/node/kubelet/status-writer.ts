import { type Clock, errorMessage, type Logger } from '#server/base';
import { type Client, ConnectionError } from '#server/client';
import { deepEqual, isConflict, isNotFound, type Pod, type PodStatus, pods } from '#server/kube';
import { rest } from './retry.ts';

const RETRY_DELAY = 1_000;
const MAX_RETRY_DELAY = 10_000;
/**
 * How long a pod that may run to its end must have been running before that is told, milliseconds. Upstream looks at its
 * containers once a second (PLEG), so that a command that is done at once goes from Pending to Succeeded, and
 * `kubectl run -it` reads its log instead of attaching to what is gone. Short enough for a prompt.
 */
const BRIEF_RUN = 150;

/** Brings one pod's status to the API server: the latest one wins, one write at a time. Models pkg/kubelet/status/status_manager.go. */
export interface StatusWriter {
  /** The API's pod as it is known now; undefined: there is none to write to (a static pod before its mirror). */
  setTarget(pod: Pod | undefined): void;
  write(status: PodStatus): void;
  /** Resolves when what was given is written, or cannot be. */
  flush(): Promise<void>;
  stop(): void;
}

export function createStatusWriter(options: { client: Client; clock: Clock; log: Logger }): StatusWriter {
  const { client, clock, log } = options;
  const stopping = new AbortController();
  let target: Pod | undefined;
  let wanted: PodStatus | undefined;
  let written: PodStatus | undefined;
  let working: Promise<void> | undefined;
  /** Ends the wait of `pastBriefRun`. */
  let ended: (() => void) | undefined;

  const upToDate = (): boolean => {
    if (!wanted || !target) return true;
    return written ? deepEqual(written, wanted) : holds(target.status, wanted);
  };
  // Pods of a controller are nobody's prompt: a machine's launcher boots without that wait.
  const mayEndAtOnce = (): boolean =>
    wanted?.phase === 'Running' &&
    (target?.status?.phase ?? 'Pending') === 'Pending' &&
    target?.spec.restartPolicy !== 'Always' &&
    !target?.metadata.ownerReferences?.some((owner) => owner.controller);
  const pastBriefRun = (): Promise<void> =>
    new Promise((resolve) => {
      const settle = (): void => {
        stopping.signal.removeEventListener('abort', settle);
        timer.cancel();
        ended = undefined;
        resolve();
      };
      const timer = clock.after(BRIEF_RUN, settle);
      stopping.signal.addEventListener('abort', settle, { once: true });
      ended = settle;
    });
  const work = async (): Promise<void> => {
    // One turn later: what changes together is written together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (mayEndAtOnce()) await pastBriefRun();
    for (let delay = RETRY_DELAY; !upToDate() && !stopping.signal.aborted; ) {
      const status = wanted;
      const pod = target;
      if (!status || !pod) return;
      try {
        const after = await client.patch(
          pods,
          { namespace: pod.metadata.namespace, name: pod.metadata.name },
          {
            type: 'strategic',
            body: { metadata: { uid: pod.metadata.uid }, status: asPatch(pod.status, status) },
          },
          { subresource: 'status' },
        );
        written = status;
        if (target?.metadata.uid === after.metadata.uid) target = after;
        delay = RETRY_DELAY;
      } catch (error) {
        if (isNotFound(error) || isConflict(error)) {
          written = status;
          log.debug(
            { pod: pod.metadata.name, err: errorMessage(error) },
            'the pod whose status was written is gone',
          );
          continue;
        }
        const level = error instanceof ConnectionError ? 'debug' : 'warn';
        log[level]({ pod: pod.metadata.name, err: errorMessage(error) }, 'pod status could not be written');
        await rest(clock, delay, stopping.signal);
        delay = Math.min(MAX_RETRY_DELAY, delay * 2);
      }
    }
  };
  const kick = (): void => {
    if (working || upToDate() || stopping.signal.aborted) return;
    working = work().finally(() => {
      working = undefined;
      kick();
    });
  };
  return {
    setTarget(pod) {
      if (pod?.metadata.uid !== target?.metadata.uid) written = undefined;
      // Somebody else wrote this status: compare with what the server has.
      else if (
        pod &&
        written &&
        pod.metadata.resourceVersion !== target?.metadata.resourceVersion &&
        !holds(pod.status, written) &&
        !working
      )
        written = undefined;
      target = pod;
      kick();
    },
    write(status) {
      wanted = status;
      if (status.phase !== 'Running') ended?.();
      kick();
    },
    async flush() {
      while (working && !stopping.signal.aborted) await working;
    },
    stop: () => stopping.abort(),
  };
}

/** Whether a status has everything that is wanted; conditions of others may be there too. */
function holds(status: PodStatus | undefined, wanted: PodStatus): boolean {
  if (!status) return false;
  return Object.entries(wanted).every(([key, value]) => {
    if (key !== 'conditions') return deepEqual((status as Record<string, unknown>)[key], value);
    return (wanted.conditions ?? []).every((condition) => {
      const there = status.conditions?.find((other) => other.type === condition.type);
      return (
        there &&
        there.status === condition.status &&
        there.reason === condition.reason &&
        there.message === condition.message &&
        there.observedGeneration === condition.observedGeneration
      );
    });
  });
}

/**
 * The difference as a strategic merge patch: lists that a merge would add to are replaced where what is there is no longer
 * true, and what a status no longer says (the reason of a condition that turned true) is `null`.
 */
function asPatch(before: PodStatus | undefined, status: PodStatus): object {
  const replaced = (name: 'podIPs' | 'hostIPs'): object => {
    const now = status[name];
    const old = before?.[name] ?? [];
    return now && old.some((ip) => !now.some((other) => other.ip === ip.ip))
      ? { [name]: [...now, { $patch: 'replace' }] }
      : {};
  };
  const conditions = (status.conditions ?? []).map((condition) => ({
    ...dropped(
      before?.conditions?.find(({ type }) => type === condition.type),
      condition,
      CONDITION_TEXTS,
    ),
    ...condition,
  }));
  return {
    ...dropped(before, status, STATUS_TEXTS),
    ...status,
    ...(status.conditions ? { conditions } : {}),
    ...replaced('podIPs'),
    ...replaced('hostIPs'),
  };
}

const CONDITION_TEXTS = ['reason', 'message'] as const;
const STATUS_TEXTS = ['reason', 'message'] as const;

function dropped<T extends object>(
  before: T | undefined,
  after: T,
  names: readonly (keyof T & string)[],
): Record<string, null> {
  const gone = names.filter((name) => before?.[name] !== undefined && after[name] === undefined);
  return Object.fromEntries(gone.map((name) => [name, null]));
}
