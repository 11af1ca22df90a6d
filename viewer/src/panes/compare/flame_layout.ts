// The layout and colors of a differential flame graph. Pure.

import type { FlameChange } from "../../data/answers";
import type { Theme } from "../../page/theme";
import { type FlameLayout, type Frame, layoutFrames } from "../../parts/flame/flame";
import { blend, type Rgb } from "../../parts/slice_colors";

export interface DifferenceFrame extends Frame {
  beforeNs: number;
  afterNs: number;
}

// Frames arrive in pre-order. Each is as wide as the average of both sides: what is new and what is gone stay visible, and widths
// add up.
export function layoutDifference(nodes: readonly FlameChange[]): FlameLayout<DifferenceFrame> {
  const next: number[] = [0]; // by depth: where the next frame starts
  const frames = nodes.map(([depth, name, beforeNs, afterNs]) => {
    const frame = { depth, name, beforeNs, afterNs, startNs: next[depth], widthNs: (beforeNs + afterNs) / 2, selfNs: 0, count: 0 };
    next[depth] = frame.startNs + frame.widthNs;
    next[depth + 1] = frame.startNs;
    return frame;
  });
  return layoutFrames(frames);
}

// -1: gone; 0: as before; 1: new.
export function changeOf(frame: Pick<DifferenceFrame, "beforeNs" | "afterNs">): number {
  const most = Math.max(frame.beforeNs, frame.afterNs);
  return most > 0 ? (frame.afterNs - frame.beforeNs) / most : 0;
}

// Red is slower and blue is faster, which color-blind readers can tell apart. Labels keep AA contrast on all of them.
const kColors: Record<Theme, { same: Rgb; slower: Rgb; faster: Rgb }> = {
  light: { same: [222, 225, 231], slower: [242, 128, 112], faster: [120, 172, 245] },
  dark: { same: [62, 68, 80], slower: [150, 48, 42], faster: [38, 84, 158] },
};

export function changeColor(change: number, theme: Theme): Rgb {
  const { same, slower, faster } = kColors[theme];
  // The square root: a tenth more is visible.
  return blend(same, change > 0 ? slower : faster, Math.sqrt(Math.min(1, Math.abs(change))));
}
