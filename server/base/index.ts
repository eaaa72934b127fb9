// base: what every other room may take for granted.
// Clock (waiting that can be scaled, paused and stepped), Ids (identity and chance), errors, log, disposal and
// bounded queues. It knows nothing of Kubernetes and nothing of the product.

export { type AsyncQueue, createAsyncQueue, QueueOverflowError } from './async-queue.ts';
export {
  type Clock,
  createClock,
  createManualClock,
  type ManualClock,
  type PausableClock,
  type Timer,
} from './clock.ts';
export { createDisposables, type Disposable, type DisposableStore } from './disposal.ts';
export { assertNever, errorMessage, InternalError, OperationalError } from './errors.ts';
export { createRandomIds, createSeededIds, type Ids } from './ids.ts';
export { createLogger, type Logger, silentLogger } from './log.ts';
