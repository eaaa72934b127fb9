import { type Lab, startLab } from './lab.ts';
import { percentile, type Row } from './row.ts';

/** The first births of a process compile its code: they are told apart. */
const WARM_UP = 5;
const ONE_BY_ONE = 20;
const AT_ONCE = 50;
const AWAKE = 200;
/** So many at a time while filling up to AWAKE. */
const WAVE = 25;

/** Births one by one and many at once, then what a tenant at rest costs in memory. */
export async function benchBirths(): Promise<Row[]> {
  const lab = await startLab();
  try {
    const first = await birthsInARow(lab, 'warm', WARM_UP);
    const alone = await birthsInARow(lab, 'alone', ONE_BY_ONE);
    const begun = performance.now();
    const together = await Promise.all(range(AT_ONCE).map((index) => lab.birth(`together-${index}`)));
    const all = performance.now() - begun;
    const memory = await memoryPerTenant(lab, WARM_UP + ONE_BY_ONE + AT_ONCE);
    return [
      { name: 'first birth of a process', value: first[0] ?? 0, unit: 'ms' },
      {
        name: `birth alone, p50 of ${ONE_BY_ONE}`,
        value: percentile(alone, 50),
        unit: 'ms',
        target: '< 100',
      },
      { name: `birth alone, p95 of ${ONE_BY_ONE}`, value: percentile(alone, 95), unit: 'ms' },
      { name: `${AT_ONCE} births at once, all done`, value: all, unit: 'ms' },
      {
        name: `${AT_ONCE} births at once, p50`,
        value: percentile(
          together.map((birth) => birth.milliseconds),
          50,
        ),
        unit: 'ms',
      },
      memory,
    ];
  } finally {
    await lab.stop();
  }
}

async function birthsInARow(lab: Lab, name: string, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (const index of range(count)) samples.push((await lab.birth(`${name}-${index}`)).milliseconds);
  return samples;
}

async function memoryPerTenant(lab: Lab, present: number): Promise<Row> {
  const before = lab.memory();
  const more = AWAKE - present;
  for (let done = 0; done < more; done += WAVE) {
    await Promise.all(range(Math.min(WAVE, more - done)).map((index) => lab.birth(`awake-${done + index}`)));
  }
  // At rest: what the births left behind has been collected.
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  return {
    name: `memory per tenant (${present} → ${AWAKE} awake)`,
    value: (lab.memory() - before) / more / 1024 / 1024,
    unit: 'MB',
    target: '<= 2',
  };
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
