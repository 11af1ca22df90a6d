// The peak and the categories of a memory curve. Pure.

import type { MemoryCurve, Report } from "../../data/answers";

export interface Peak {
  atNs: number;
  bytes: number;
}

// Where the most was allocated: the middle of that bin. Null for a curve without samples.
export function peakOf(curve: Pick<MemoryCurve, "fromNs" | "binNs" | "allocatedBytes">): Peak | null {
  let best = -1;
  curve.allocatedBytes.forEach((bytes, at) => {
    if (bytes !== null && (best < 0 || bytes > curve.allocatedBytes[best]!)) best = at;
  });
  if (best < 0) return null;
  return { atNs: curve.fromNs + (best + 0.5) * curve.binNs, bytes: curve.allocatedBytes[best]! };
}

// The peak to the nanosecond, where the memory report has a device with that peak.
export function exactPeak(curve: Pick<MemoryCurve, "fromNs" | "binNs" | "allocatedBytes">, report: Report | null): Peak | null {
  const peak = peakOf(curve);
  const devices = report?.tables.find((table) => table.name === "devices");
  if (!peak || !devices) return peak;
  const at = (name: string) => devices.columns.findIndex((column) => column.name === name);
  const [bytesAt, timeAt] = [at("peak_bytes"), at("peak_ns")];
  const row = devices.rows.find((each) => each[bytesAt] === peak.bytes && typeof each[timeAt] === "number");
  return row ? { atNs: row[timeAt] as number, bytes: peak.bytes } : peak;
}

// The categories that hold memory at some point.
export function shownCategories(curve: Pick<MemoryCurve, "categories">): string[] {
  return Object.entries(curve.categories).flatMap(([name, values]) => (values.some((value) => (value ?? 0) > 0) ? [name] : []));
}

// The same color in every trace; memory without a known category is gray.
const kColors: Readonly<Record<string, string>> = {
  parameters: "--c5",
  gradients: "--c1",
  "optimizer state": "--c7",
  activations: "--c2",
  inputs: "--c6",
  temporaries: "--c3",
  workspace: "--c4",
};
export function categoryVariable(name: string): string {
  return Object.hasOwn(kColors, name) ? kColors[name] : "--c8";
}

// The index of a block owner's category ("category: op"), or -1.
export function categoryOf(owner: string | null, categories: readonly string[]): number {
  return owner === null ? -1 : categories.findIndex((name) => owner === name || owner.startsWith(`${name}: `));
}
