// Numbers for stacked charts. Pure.

export type Series = readonly (number | null)[];

// Running sums of the series: the first is at the bottom. Null counts as 0, except where all are null.
export function stackSeries(series: readonly Series[]): (number | null)[][] {
  const length = series[0]?.length ?? 0;
  const sums: (number | null)[] = new Array<number | null>(length).fill(null);
  return series.map((one) => {
    for (let i = 0; i < length; ++i) {
      const value = one[i];
      if (value !== null && value !== undefined) sums[i] = (sums[i] ?? 0) + value;
    }
    return [...sums];
  });
}

// The largest parts, in their given order: at most `maxParts`, each at least `minShare` of the total. The others become one
// part called "rest".
export function largestParts(
  names: readonly string[],
  rows: readonly (readonly number[])[],
  options: { maxParts: number; minShare: number },
): { names: string[]; rows: number[][] } {
  const totals = names.map((_, at) => rows.reduce((sum, row) => sum + (row[at] ?? 0), 0));
  const whole = totals.reduce((sum, total) => sum + total, 0);
  const ranked = names
    .map((_, at) => at)
    .sort((a, b) => totals[b] - totals[a])
    .filter((at) => totals[at] > 0 && totals[at] >= options.minShare * whole)
    .slice(0, options.maxParts);
  const kept = new Set(ranked);
  const keptInOrder = names.map((_, at) => at).filter((at) => kept.has(at));
  const hasRest = names.some((_, at) => !kept.has(at) && totals[at] > 0);
  return {
    names: [...keptInOrder.map((at) => names[at]), ...(hasRest ? ["rest"] : [])],
    rows: rows.map((row) => {
      const own = keptInOrder.map((at) => row[at] ?? 0);
      if (!hasRest) return own;
      return [...own, row.reduce((sum, value, at) => (kept.has(at) ? sum : sum + value), 0)];
    }),
  };
}
