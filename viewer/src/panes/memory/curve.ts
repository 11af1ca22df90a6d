// Reading a memory curve. Pure.

import type { MemoryCurve } from "../../data/types";

// Where most was allocated: the middle of that bin. Null for a curve without a sample.
export function peakOf(curve: Pick<MemoryCurve, "fromNs" | "binNs" | "allocatedBytes">): {
  atNs: number;
  bytes: number;
} | null {
  let best = -1;
  curve.allocatedBytes.forEach((bytes, at) => {
    if (bytes !== null && (best < 0 || bytes > curve.allocatedBytes[best]!)) best = at;
  });
  if (best < 0) return null;
  return { atNs: curve.fromNs + (best + 0.5) * curve.binNs, bytes: curve.allocatedBytes[best]! };
}
