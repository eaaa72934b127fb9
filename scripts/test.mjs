// `npm test`: everything, cheapest first, ending in one line: `N passed, N failed` (`, N skipped`).
// Each step of `npm run check` counts as one test. With arguments only those suites run: check, unit, e2e.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { steps } from './check-steps.mjs';

const wanted = process.argv.slice(2);
const wants = (suite) => wanted.length === 0 || wanted.includes(suite);
const counts = { passed: 0, failed: 0, skipped: 0 };

function check() {
  for (const { name, command, args } of steps) {
    const { status } = spawnSync(command, args, { stdio: 'inherit' });
    counts[status === 0 ? 'passed' : 'failed']++;
    console.log(`${status === 0 ? 'ok  ' : 'FAIL'} check: ${name}`);
  }
}

function vitest(suite, config) {
  const output = `.cache/test-${suite}.json`;
  mkdirSync('.cache', { recursive: true });
  rmSync(output, { force: true });
  const { status } = spawnSync(
    'npx',
    [
      'vitest',
      'run',
      '--config',
      config,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${output}`,
    ],
    {
      stdio: 'inherit',
    },
  );
  if (!existsSync(output)) {
    counts.failed++;
    console.log(`FAIL ${suite}: the test runner did not finish`);
    return;
  }
  const result = JSON.parse(readFileSync(output, 'utf8'));
  counts.passed += result.numPassedTests;
  counts.failed += result.numFailedTests;
  counts.skipped += result.numPendingTests + result.numTodoTests;
  // A file that cannot be loaded, or an error outside a test, fails the run without failing a test.
  if (status !== 0 && result.numFailedTests === 0) counts.failed++;
}

if (wants('check')) check();
if (wants('unit')) vitest('unit', 'vitest.config.ts');
if (wants('e2e')) vitest('e2e', 'vitest.e2e.config.ts');
console.log(
  `${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`,
);
process.exit(counts.failed === 0 && counts.passed > 0 ? 0 : 1);
