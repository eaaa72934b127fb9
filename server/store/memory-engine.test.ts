import { createMemoryEngine } from './memory-engine.ts';
import { describeStoreContract } from './testing/index.ts';

describeStoreContract('the memory engine', () => ({
  createEngine: createMemoryEngine,
  durable: false,
  dispose: () => undefined,
}));
