import { type Clock, errorMessage, type Logger } from '#server/base';
import { formatMicroTime, isNotFound, type Lease, type LeaseSpec, leases } from '#server/kube';
import type { Client } from './contract.ts';

export interface LeaseLockOptions {
  client: Client;
  clock: Clock;
  log: Logger;
  lease: { namespace: string; name: string };
  identity: string;
  /** Milliseconds a lease counts after it was last seen to change. */
  leaseDuration: number;
}

/** One candidate's view of a Lease. */
export interface LeaseLock {
  /** One attempt to take or to renew the lease; never rejects. True: it is ours. */
  tryAcquireOrRenew(): Promise<boolean>;
  /** Gives the lease up so that another candidate need not wait for it to run out. False when that failed. */
  release(): Promise<boolean>;
  /** The last lease seen; undefined before the first answer. */
  readonly observed: Lease | undefined;
  /** Who was last seen to hold it; empty when nobody does. */
  readonly holder: string;
}

/** The parts by which a change of the lease is recognised. */
function recordOf(lease: Lease | undefined): string {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } =
    lease?.spec ?? {};
  return JSON.stringify([holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions]);
}

/**
 * Models k8s.io/client-go/tools/leaderelection (tryAcquireOrRenew, release) over resourcelock.LeaseLock. Other candidates'
 * clocks are not believed: a lease is over when it was not *seen* to change for its duration.
 */
export function createLeaseLock(options: LeaseLockOptions): LeaseLock {
  const { client, clock, log, identity, lease: ref } = options;
  let observed: Lease | undefined;
  let observedAt = 0;

  const observe = (lease: Lease): void => {
    if (!observed || recordOf(observed) !== recordOf(lease)) observedAt = clock.now();
    observed = lease;
  };
  const holder = (): string => observed?.spec?.holderIdentity ?? '';
  const stillValid = (): boolean =>
    observedAt + (observed?.spec?.leaseDurationSeconds ?? 0) * 1000 > clock.now();
  const ours = (from: Pick<LeaseSpec, 'acquireTime' | 'leaseTransitions'>): LeaseSpec => ({
    holderIdentity: identity,
    leaseDurationSeconds: Math.floor(options.leaseDuration / 1000),
    acquireTime: from.acquireTime ?? formatMicroTime(clock.now()),
    renewTime: formatMicroTime(clock.now()),
    leaseTransitions: from.leaseTransitions ?? 0,
  });
  const write = async (lease: Lease, spec: LeaseSpec): Promise<void> => {
    observe(await client.update(leases, { ...lease, spec: { ...lease.spec, ...spec } }));
  };
  const create = async (): Promise<void> => {
    observe(await client.create(leases, { metadata: { ...ref }, spec: ours({}) }));
  };

  const attempt = async (): Promise<boolean> => {
    // The holder renews without reading first; when that fails somebody wrote in between, and it has to look.
    if (observed && holder() === identity && stillValid()) {
      try {
        await write(observed, ours(observed.spec));
        return true;
      } catch (error) {
        log.debug({ lease: ref, error: errorMessage(error) }, 'renewing the lease without reading it failed');
      }
    }
    let current: Lease;
    try {
      current = await client.get(leases, ref);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await create();
      return true;
    }
    observe(current);
    if (holder() !== '' && holder() !== identity && stillValid()) return false;
    const transitions = current.spec?.leaseTransitions ?? 0;
    await write(
      current,
      holder() === identity ? ours(current.spec) : ours({ leaseTransitions: transitions + 1 }),
    );
    return true;
  };

  return {
    async tryAcquireOrRenew() {
      try {
        return await attempt();
      } catch (error) {
        log.debug(
          { lease: ref, identity, error: errorMessage(error) },
          'the lease could not be taken or renewed',
        );
        return false;
      }
    },
    async release() {
      if (!observed || holder() !== identity) return true;
      const now = formatMicroTime(clock.now());
      try {
        await write(observed, {
          holderIdentity: '',
          leaseDurationSeconds: 1,
          acquireTime: now,
          renewTime: now,
        });
        return true;
      } catch (error) {
        log.warn({ lease: ref, identity, error: errorMessage(error) }, 'the lease could not be released');
        return false;
      }
    },
    get observed() {
      return observed;
    },
    get holder() {
      return holder();
    },
  };
}
