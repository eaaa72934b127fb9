import { defineConfig } from 'vitest/config';

/** Tests of the started product, from outside: real processes, real kubectl. One file at a time. */
export default defineConfig({
  test: {
    include: ['tests/e2e/**/*.test.ts'],
    environment: 'node',
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
    pool: 'forks',
  },
});
