// How high the bars of a chart may reach.

const kCutFactor = 2.5;
const kCutRoom = 1.6;

export interface Bar {
  durationNs: number;
  warmup: boolean; // not what one wants to compare
}

// What comes first, a program's warm-up or a prefill, may take many times as long as the rest, which one wants to see: such
// bars are cut.
export function scaleTop(bars: readonly Bar[]): number {
  const longest = (some: readonly Bar[]) => Math.max(0, ...some.map((bar) => bar.durationNs));
  const usual = longest(bars.filter((bar) => !bar.warmup));
  const all = longest(bars);
  const top = usual > 0 && all > kCutFactor * usual ? usual * kCutRoom : all * 1.05;
  return top > 0 ? top : 1;
}
