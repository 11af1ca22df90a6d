// The difference of two steps as a waterfall: from the step before, part by part, to the step after. Pure.

import type { Table } from "../../data/answers";

export interface Part {
  name: string;
  beforeNs: number;
  afterNs: number;
  meaning: string;
}

export interface Bar extends Part {
  fromNs: number; // where the parts above it have led to
  toNs: number;
}

export interface Waterfall {
  beforeNs: number;
  afterNs: number;
  bars: Bar[]; // the last one ends at afterNs
  axis: [fromNs: number, toNs: number];
}

// The parts of a comparison's report without its sum.
export function partsOf(table: Table): Part[] {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const [name, before, after, meaning] = ["part", "before_ns", "after_ns", "meaning"].map(at);
  return table.rows
    .map((row) => ({
      name: String(row[name]),
      beforeNs: Number(row[before]),
      afterNs: Number(row[after]),
      meaning: String(row[meaning] ?? ""),
    }))
    .filter((part) => part.name !== "all");
}

const change = (part: Part) => part.afterNs - part.beforeNs;

// Parts that change less than `share` of the largest change become one, so that all of them still add up.
export function withoutSmall(parts: readonly Part[], share = 0.02): Part[] {
  const largest = Math.max(0, ...parts.map((part) => Math.abs(change(part))));
  const isSmall = (part: Part) => Math.abs(change(part)) < share * largest || change(part) === 0;
  const small = parts.filter(isSmall);
  if (small.length < 2) return [...parts];
  const sum = (value: (part: Part) => number) => small.reduce((total, part) => total + value(part), 0);
  return [
    ...parts.filter((part) => !isSmall(part)),
    {
      name: `${small.length} others`,
      beforeNs: sum((part) => part.beforeNs),
      afterNs: sum((part) => part.afterNs),
      meaning: small.map((part) => part.name).join(", "),
    },
  ];
}

export function waterfall(parts: readonly Part[]): Waterfall {
  const beforeNs = parts.reduce((total, part) => total + part.beforeNs, 0);
  let now = beforeNs;
  const bars = parts.map((part) => {
    const fromNs = now;
    now += change(part);
    return { ...part, fromNs, toNs: now };
  });
  return { beforeNs, afterNs: now, bars, axis: axisOf([beforeNs, ...bars.map((bar) => bar.toNs)]) };
}

// From 0, unless what changes would then be too small to see.
function axisOf(levels: readonly number[]): [number, number] {
  const low = Math.min(...levels);
  const high = Math.max(...levels, 1);
  if (low <= 0 || high - low > 0.3 * high) return [Math.min(0, low), high];
  const margin = Math.max(0.25 * (high - low), 0.005 * high);
  return [Math.max(0, low - margin), high];
}
