import type { Clock, Ids, Logger } from '#server/base';
import type { Client } from './contract.ts';
import type { InformerFactory } from './informer.ts';

/**
 * What a controller is given: a client under its own identity, informers it shares with its neighbours, and time.
 * A controller knows nothing else and nobody else: it reacts to what the API holds.
 */
export interface ControllerContext {
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

/** A running or not yet running control loop. */
export interface Controller {
  /** Asks for its informers and starts its workers. Called once, before `informers.start()`. */
  start(): void;
  /** Stops the workers; resolves when the last reconcile has ended. */
  stop(): Promise<void>;
}
