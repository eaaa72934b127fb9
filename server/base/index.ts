// base: what every other room may take for granted.
// Clock (waiting that can be scaled, paused and stepped), Ids (identity and chance), errors, log, disposal and
// bounded queues. It knows nothing of Kubernetes and nothing of the product.
export { type Clock, type Timer, type PausableClock, createClock, createManualClock, type ManualClock } from './clock.ts';
export { type Ids, createRandomIds, createSeededIds } from './ids.ts';
export { InternalError, OperationalError, assertNever, errorMessage } from './errors.ts';
export { type Logger, createLogger, silentLogger } from './log.ts';
export { type Disposable, type DisposableStore, createDisposables } from './disposal.ts';
export { type AsyncQueue, createAsyncQueue, QueueOverflowError } from './async-queue.ts';
