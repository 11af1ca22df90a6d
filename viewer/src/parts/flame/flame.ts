// The layout of a flame graph, hit testing and search. Pure: no DOM.

import type { FlameNode } from "../../data/answers";

export interface Frame {
  depth: number;
  startNs: number;
  widthNs: number;
  name: string;
  selfNs: number;
  count: number;
}

// Frames may carry more than their place: `F` of a differential flame graph has both sides.
export interface FlameLayout<F extends Frame = Frame> {
  rows: F[][]; // by depth, each sorted by start
  fromNs: number;
  toNs: number;
  frameCount: number;
}

export interface FlameView {
  fromNs: number;
  toNs: number;
}

export function layoutFlame(nodes: readonly FlameNode[]): FlameLayout {
  return layoutFrames(
    nodes.map(([depth, startNs, widthNs, name, selfNs, count]) => ({ depth, startNs, widthNs, name, selfNs, count })),
  );
}

export function layoutFrames<F extends Frame>(frames: readonly F[]): FlameLayout<F> {
  const rows: F[][] = [];
  let fromNs = Infinity;
  let toNs = -Infinity;
  for (const frame of frames) {
    while (rows.length <= frame.depth) rows.push([]);
    rows[frame.depth].push(frame);
    fromNs = Math.min(fromNs, frame.startNs);
    toNs = Math.max(toNs, frame.startNs + frame.widthNs);
  }
  for (const row of rows) row.sort((a, b) => a.startNs - b.startNs);
  const empty = frames.length === 0;
  return { rows, fromNs: empty ? 0 : fromNs, toNs: empty ? 1 : Math.max(toNs, fromNs + 1), frameCount: frames.length };
}

// The first frame of a row that ends after `atNs`.
function firstAfter(row: readonly Frame[], atNs: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].startNs + row[middle].widthNs <= atNs) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function frameAt<F extends Frame>(layout: FlameLayout<F>, depth: number, atNs: number): F | null {
  const row = layout.rows[depth];
  if (!row) return null;
  const frame = row[firstAfter(row, atNs)];
  return frame && frame.startNs <= atNs && atNs < frame.startNs + frame.widthNs ? frame : null;
}

export function parentOf<F extends Frame>(layout: FlameLayout<F>, frame: F): F | null {
  return frame.depth > 0 ? frameAt(layout, frame.depth - 1, frame.startNs) : null;
}

export function childrenOf<F extends Frame>(layout: FlameLayout<F>, frame: F): F[] {
  const row = layout.rows[frame.depth + 1] ?? [];
  const end = frame.startNs + frame.widthNs;
  const out: F[] = [];
  for (let i = firstAfter(row, frame.startNs); i < row.length && row[i].startNs < end; ++i) out.push(row[i]);
  return out;
}

// The frame before (-1) or after (1) it in its row.
export function siblingOf<F extends Frame>(layout: FlameLayout<F>, frame: F, direction: 1 | -1): F | null {
  const row = layout.rows[frame.depth];
  return row[row.indexOf(frame) + direction] ?? null;
}

export interface Box<F extends Frame = Frame> {
  frame: F;
  left: number;
  width: number;
}

// The frames of a row in a view `pixels` wide, clipped at its edges. Of frames narrower than a pixel, one per pixel is kept.
export function visibleBoxes<F extends Frame>(row: readonly F[], view: FlameView, pixels: number): Box<F>[] {
  const scale = pixels / (view.toNs - view.fromNs);
  const boxes: Box<F>[] = [];
  let filledTo = -1;
  for (let i = firstAfter(row, view.fromNs); i < row.length && row[i].startNs < view.toNs; ++i) {
    const left = Math.max(0, (row[i].startNs - view.fromNs) * scale);
    const right = Math.min(pixels, (row[i].startNs + row[i].widthNs - view.fromNs) * scale);
    if (right - left < 1 && Math.floor(left) <= filledTo) continue;
    filledTo = Math.floor(left);
    boxes.push({ frame: row[i], left, width: Math.max(right - left, 1) });
  }
  return boxes;
}

// `factor` times as long, around `atNs`, within the layout.
export function zoomView(layout: FlameLayout, view: FlameView, atNs: number, factor: number): FlameView {
  const whole = layout.toNs - layout.fromNs;
  const length = Math.min(whole, Math.max((view.toNs - view.fromNs) * factor, whole / 1e6));
  const share = (atNs - view.fromNs) / (view.toNs - view.fromNs);
  const fromNs = Math.min(Math.max(atNs - share * length, layout.fromNs), layout.toNs - length);
  return { fromNs, toNs: fromNs + length };
}

export function matches(name: string, text: string): boolean {
  return text !== "" && name.toLowerCase().includes(text.toLowerCase());
}

// The number of matching frames and their time. A match inside a match is not counted twice.
export function searchFlame(layout: FlameLayout, text: string): { frames: number; totalNs: number } {
  let frames = 0;
  let totalNs = 0;
  let covered: [number, number][] = [];
  for (const row of layout.rows) {
    const added: [number, number][] = [];
    let at = 0;
    for (const frame of row) {
      if (!matches(frame.name, text)) continue;
      frames += 1;
      while (at < covered.length && covered[at][1] <= frame.startNs) ++at;
      if (at < covered.length && covered[at][0] <= frame.startNs) continue;
      totalNs += frame.widthNs;
      added.push([frame.startNs, frame.startNs + frame.widthNs]);
    }
    if (added.length > 0) covered = [...covered, ...added].sort((a, b) => a[0] - b[0]);
  }
  return { frames, totalNs };
}

// The protocol's number for the kind of a frame, guessed from its name (flame data has none), so that colors match the timeline.
export function frameKind(name: string): number {
  if (/^\(\d+ more\)$/.test(name)) return 7;
  if (/\.py\(\d+\): |^<built-in /.test(name)) return 2;
  if (/^nn\.Module: |^ProfilerStep|^Optimizer\./.test(name)) return 1;
  if (/^(?:cuda|hip|cu)[A-Z]/.test(name)) return 3;
  return 0;
}

// What fits into `room` characters: the whole name, or the function without its file, or its start.
export function frameLabel(name: string, room: number): string {
  if (name.length <= room) return name;
  const shorter = name.replace(/^.*\.py\(\d+\): /, "").replace(/^nn\.Module: /, "");
  return shorter.length <= room ? shorter : `${shorter.slice(0, Math.max(1, room - 1))}…`;
}
