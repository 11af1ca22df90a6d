// Ranks x steps as colors: the scale, the cell under the pointer, what a cell stands for. Pure.

import type { HeatMap, HeatValue } from "../../data/job_answers";

export const kHeatTitles: Record<HeatValue, string> = {
  step: "Step time",
  compute: "Computing",
  wait: "Waiting for other ranks",
  late: "Made others wait",
  memory: "Peak memory",
};

export interface HeatScale {
  low: number;
  high: number;
}

// From the 2nd to the 98th percentile: one slow step would make all others look alike. What is beyond gets the end's color.
export function heatScale(cells: readonly number[]): HeatScale {
  const known = cells.filter((cell) => cell >= 0).sort((a, b) => a - b);
  if (known.length === 0) return { low: 0, high: 1 };
  const at = (share: number) => known[Math.round(share * (known.length - 1))];
  const low = at(0.02);
  const high = Math.max(at(0.98), low);
  // Values that differ by less than a thousandth are the same: noise would be painted in full contrast.
  return { low, high: high - low > Math.abs(high) / 1000 ? high : high + Math.max(1, Math.abs(high) / 100) };
}

// 0 to 1.
export function heatShare(value: number, scale: HeatScale): number {
  return Math.max(0, Math.min(1, (value - scale.low) / (scale.high - scale.low)));
}

type Rgb = readonly [number, number, number];

// From the surface's tone over amber to red, in light and dark.
const kStops: Record<"light" | "dark", readonly Rgb[]> = {
  light: [
    [232, 240, 252],
    [147, 182, 232],
    [240, 178, 92],
    [190, 44, 32],
  ],
  dark: [
    [30, 40, 58],
    [58, 92, 150],
    [214, 150, 64],
    [255, 112, 96],
  ],
};

export function heatColor(share: number, theme: "light" | "dark"): Rgb {
  const stops = kStops[theme];
  const at = share * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const part = at - i;
  return [0, 1, 2].map((c) => Math.round(stops[i][c] + (stops[i + 1][c] - stops[i][c]) * part)) as unknown as Rgb;
}

export interface HeatCell {
  row: number;
  column: number;
}

// x and y from 0 to 1.
export function cellAt(map: HeatMap, x: number, y: number): HeatCell | null {
  const row = Math.floor(y * map.ranks.length);
  const column = Math.floor(x * map.steps.length);
  const inside = row >= 0 && row < map.ranks.length && column >= 0 && column < map.steps.length;
  return inside ? { row, column } : null;
}

export function cellValue(map: HeatMap, cell: HeatCell): number {
  return map.cells[cell.row * map.steps.length + cell.column];
}

// "rank 3", "ranks 4 and the 3 after it", "step 12".
export function cellText(map: HeatMap, cell: HeatCell): string {
  const rank = map.ranks[cell.row];
  const step = map.steps[cell.column];
  const ranks = map.ranksARow > 1 ? `rank ${rank} and the ${map.ranksARow - 1} after it` : `rank ${rank}`;
  const steps = map.stepsAColumn > 1 ? `step ${step} and the ${map.stepsAColumn - 1} after it` : `step ${step}`;
  return `${ranks}, ${steps}`;
}
