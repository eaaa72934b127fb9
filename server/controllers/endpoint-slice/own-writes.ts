import type { EndpointSlice } from '#server/kube';

/** Remembers what was written, to tell a late cache from a foreign change. */
export interface OwnWrites {
  written(service: string, slice: EndpointSlice): void;
  removed(service: string, slice: EndpointSlice): void;
  /** Whether the cache does not show yet what was written for the service. `cached`: the service's slices in it. */
  isStale(service: string, cached: readonly EndpointSlice[]): boolean;
  /** The cache shows this version (or that it is gone): `foreign` when somebody else made it so. */
  observed(service: string, slice: EndpointSlice, gone: boolean): 'own' | 'foreign';
  forget(service: string): void;
}

const GONE = Number.POSITIVE_INFINITY;

function version(slice: EndpointSlice): number {
  return Number(slice.metadata.resourceVersion ?? 0);
}

/** Models EndpointSliceTracker of k8s.io/endpointslice/util, by resource version. */
export function createOwnWrites(): OwnWrites {
  const services = new Map<string, Map<string, number>>();
  const of = (service: string): Map<string, number> => {
    const known = services.get(service) ?? new Map<string, number>();
    services.set(service, known);
    return known;
  };
  return {
    written(service, slice) {
      of(service).set(slice.metadata.uid ?? '', version(slice));
    },
    removed(service, slice) {
      of(service).set(slice.metadata.uid ?? '', GONE);
    },
    isStale(service, cached) {
      const seen = new Map(cached.map((slice) => [slice.metadata.uid ?? '', version(slice)]));
      for (const [uid, expected] of services.get(service) ?? []) {
        const actual = seen.get(uid);
        if (expected === GONE ? actual !== undefined : actual === undefined || actual < expected) return true;
      }
      return false;
    },
    observed(service, slice, gone) {
      const uid = slice.metadata.uid ?? '';
      const expected = services.get(service)?.get(uid);
      if (gone) {
        services.get(service)?.delete(uid);
        return expected === GONE ? 'own' : 'foreign';
      }
      return expected !== undefined && version(slice) <= expected ? 'own' : 'foreign';
    },
    forget(service) {
      services.delete(service);
    },
  };
}
