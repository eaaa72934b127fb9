import type { Clock, Logger } from '#server/base';
import type { InformerFactory } from '#server/client';
import { InternalError } from '#server/base';
import type { Network } from './contract.ts';

export function createServiceProxy(options: { network: Network; informers: InformerFactory; clock: Clock; log: Logger }): { stop(): void } {
  throw new InternalError(`being written ${typeof options}`);
}
