/** One finished request (of a watch: one that ended). */
export interface AuditRecord {
  /** Wall-clock milliseconds of the start. */
  time: number;
  user: string;
  userAgent: string;
  verb: string;
  group?: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  /** Of requests that are not about resources. */
  path?: string;
  code: number;
  /** Milliseconds. */
  latency: number;
}

/** The newest requests, bounded. */
export interface AuditLog {
  record(record: AuditRecord): void;
  /** Oldest first. */
  recent(): AuditRecord[];
}

const KEPT = 256;

export function createAuditLog(listener: ((record: AuditRecord) => void) | undefined): AuditLog {
  const ring: AuditRecord[] = [];
  let next = 0;
  return {
    record(record) {
      if (ring.length < KEPT) ring.push(record);
      else ring[next] = record;
      next = (next + 1) % KEPT;
      listener?.(record);
    },
    recent: () => (ring.length < KEPT ? [...ring] : [...ring.slice(next), ...ring.slice(0, next)]),
  };
}
