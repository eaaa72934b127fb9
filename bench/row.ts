/** One figure of the bench. `ratio` is value against `floor`, both measured in this run. */
export interface Row {
  name: string;
  value: number;
  unit: string;
  floor?: number;
  ratio?: number;
  target?: string;
}

/** The p-th percentile (0–100) of the samples. */
export function percentile(samples: readonly number[], p: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((p / 100) * sorted.length))] ?? Number.NaN;
}
