// The layout of the fragmentation map, and its totals. Pure.

import type { MemorySegments } from "../../data/answers";

export type Segment = MemorySegments["segments"][number];

export interface PlacedSegment {
  segment: Segment;
  line: number;
  left: number; // 0..1 of the width
  width: number;
}

const kGap = 0.004;
const kMinWidth = 0.004;

// The largest segment fills a line; smaller ones share lines, largest first.
export function packSegments(segments: readonly Segment[]): { placed: PlacedSegment[]; lines: number } {
  const sorted = [...segments].sort((a, b) => b.bytes - a.bytes);
  const largest = sorted[0]?.bytes ?? 1;
  const placed: PlacedSegment[] = [];
  let line = 0;
  let left = 0;
  for (const segment of sorted) {
    const width = Math.max(kMinWidth, segment.bytes / largest);
    if (left > 0 && left + width > 1 + 1e-9) {
      line += 1;
      left = 0;
    }
    placed.push({ segment, line, left, width });
    left += width + kGap;
  }
  return { placed, lines: placed.length > 0 ? line + 1 : 0 };
}

export interface Fragmentation {
  totalBytes: number;
  freeBytes: number;
  largestFreeBytes: number;
  freeSegments: number; // without an allocated block: could be returned to the driver
}

export function fragmentation(segments: readonly Segment[]): Fragmentation {
  const out: Fragmentation = { totalBytes: 0, freeBytes: 0, largestFreeBytes: 0, freeSegments: 0 };
  for (const segment of segments) {
    out.totalBytes += segment.bytes;
    let used = 0;
    for (const block of segment.blocks) {
      if (block.state === "allocated") {
        used += block.bytes;
        continue;
      }
      out.freeBytes += block.bytes;
      out.largestFreeBytes = Math.max(out.largestFreeBytes, block.bytes);
    }
    if (used === 0) out.freeSegments += 1;
  }
  return out;
}
