// The top of a bar chart's scale.

const kClipFactor = 2.5;
const kClipRoom = 1.6;

export interface Bar {
  durationNs: number;
  warmup: boolean; // not to be compared with the others
}

// The first bars (warm-up steps, a prefill) may be many times as long as the rest. They are clipped, so that the others can be
// told apart.
export function scaleTop(bars: readonly Bar[]): number {
  const longest = (some: readonly Bar[]) => Math.max(0, ...some.map((bar) => bar.durationNs));
  const regular = longest(bars.filter((bar) => !bar.warmup));
  const all = longest(bars);
  const top = regular > 0 && all > kClipFactor * regular ? regular * kClipRoom : all * 1.05;
  return top > 0 ? top : 1;
}
