// Draws the slices and runs of lanes into a raster, and collects the labels that fit.
//
// Runs (bins of slices that are too short to be drawn one by one) come first, faded by how busy they are. Slices are drawn over
// them, at least a pixel wide.

import type { NameEntry, TileStore, TileSpan } from "../../data/tile_store";
import { isCut, kindOf } from "../../data/tiles";
import type { Theme } from "../../page/theme";
import { fadedColors, kFadeSteps, type Rgb } from "../slice_colors";
import { type Block, kCompactRowHeight, kRowHeight } from "./layout";
import type { Raster } from "./raster";
import { levelFor, type View, visibleTiles } from "./view";

export interface Label {
  x: number; // CSS pixels
  y: number; // middle
  width: number;
  name: NameEntry;
  small: boolean; // in a compact row
}

export interface SlicePaint {
  theme: Theme;
  back: Rgb;
  // Lowercase search text: names that do not contain it are faded. "" for no search.
  highlight: string;
}

export interface SliceFrame {
  view: View;
  endNs: number;
  maxLevel: number;
  width: number; // CSS pixels
  dpr: number;
  paint: SlicePaint;
  measure: (text: string) => number;
}

// Whether exact tiles were missing, and whether a coarser tile, or none, stood in.
export interface DrawnState {
  missing: boolean;
  coarser: boolean;
}

const kMinLabelPixels = 26;
const kMinFade = 7;
const kUnmatchedFade = 4;
const kMinLetters = 2;

interface DrawnName {
  of: SlicePaint;
  width: number;
  matches: boolean;
  cuts: Map<number, number>; // width by number of letters
  colors: (Uint32Array | undefined)[];
}

// Computed once per name, until theme or search change.
export function drawnName(entry: NameEntry, frame: SliceFrame): DrawnName {
  const old = entry.drawn as DrawnName | null;
  if (old?.of === frame.paint) return old;
  const { highlight } = frame.paint;
  const made: DrawnName = {
    of: frame.paint,
    width: old?.width ?? frame.measure(entry.text),
    matches: highlight === "" || entry.text.toLowerCase().includes(highlight),
    cuts: old?.cuts ?? new Map<number, number>(),
    colors: [],
  };
  entry.drawn = made;
  return made;
}

function colorsOf(entry: NameEntry, kind: number, frame: SliceFrame): Uint32Array {
  const drawn = drawnName(entry, frame);
  return (drawn.colors[kind] ??= fadedColors(kind, entry.text, frame.paint.theme, frame.paint.back));
}

const kNoName: NameEntry = { text: "", drawn: null, uses: 0 };

// The tiles to draw for a lane, from left to right.
function spansOf(
  store: TileStore,
  frame: SliceFrame,
  lane: { id: number; firstNs: number; lastNs: number },
  state: DrawnState,
): TileSpan[] {
  const level = levelFor(frame.view, frame.width);
  const view = { fromNs: Math.max(frame.view.fromNs, lane.firstNs), toNs: Math.min(frame.view.toNs, lane.lastNs + 1) };
  const out: TileSpan[] = [];
  if (view.fromNs > view.toNs) return out;
  const { first, last } = visibleTiles(view, level, frame.endNs);
  for (let index = first; index <= last; ++index) {
    const how = store.resolve(level, lane.id, index, frame.maxLevel, out);
    if (how !== "exact") state.missing = true;
    if (how === "coarser" || how === "none") state.coarser = true;
  }
  return out;
}

// `y` is the top of the block in CSS pixels; nothing is drawn outside [clipTop, clipBottom).
export function drawLane(
  raster: Raster,
  store: TileStore,
  frame: SliceFrame,
  block: Block & { type: "lane" },
  y: number,
  clipTop: number,
  clipBottom: number,
  state: DrawnState,
  labels: Label[],
): void {
  const { dpr } = frame;
  const scale = raster.width / (frame.view.toNs - frame.view.fromNs);
  const from = frame.view.fromNs;
  const top = Math.round(clipTop * dpr);
  const bottom = Math.round(clipBottom * dpr);
  const rowGap = block.rowHeight >= 8 ? Math.round(dpr) : 0;
  const rowTop = (row: number) =>
    Math.round((y + Math.min(row * block.rowHeight, block.height - block.rowHeight)) * dpr);
  const rowPixels = Math.max(1, Math.round(block.rowHeight * dpr) - rowGap);
  const withLabels = block.rowHeight >= kCompactRowHeight;

  spansOf(store, frame, block.lane, state).forEach(({ tile, fromNs, toNs }, nth) => {
    const spanRight = Math.ceil((toNs - from) * scale);
    const spanLeft = Math.floor((fromNs - from) * scale);
    for (let i = 0; i < tile.runCount; ++i) {
      const start = tile.runStartNs[i];
      if (start >= toNs || start + tile.runDurationNs[i] <= fromNs) continue;
      const x0 = Math.max(spanLeft, Math.floor((start - from) * scale));
      const x1 = Math.min(spanRight, Math.max(x0 + 1, Math.floor((start + tile.runDurationNs[i] - from) * scale)));
      if (x1 <= 0 || x0 >= raster.width) continue;
      const y0 = rowTop(tile.runRow[i]);
      if (y0 >= bottom || y0 + rowPixels <= top) continue;
      const name = store.name(tile.runName[i]) ?? kNoName;
      const colors = colorsOf(name, tile.runKind[i], frame);
      let fade = kMinFade + Math.round((kFadeSteps - 1 - kMinFade) * Math.min(1, tile.runBusy[i]));
      if (!drawnName(name, frame).matches) fade = Math.min(fade, kUnmatchedFade);
      raster.fill(x0, y0, x1, y0 + rowPixels, colors[fade], top, bottom);
    }
    for (let i = 0; i < tile.sliceCount; ++i) {
      const start = tile.startNs[i];
      const end = start + tile.durationNs[i];
      if (start >= toNs || end < fromNs) continue;
      // It starts in an earlier tile and was drawn with that one.
      if (start < fromNs && nth > 0) continue;
      const x0 = Math.floor((start - from) * scale);
      let x1 = Math.max(x0 + 1, Math.floor((end - from) * scale));
      if (x1 <= 0 || x0 >= raster.width) continue;
      const y0 = rowTop(tile.row[i]);
      if (y0 >= bottom || y0 + rowPixels <= top) continue;
      if (x1 - x0 > 3 * dpr) x1 -= Math.round(dpr);
      const name = store.name(tile.name[i]) ?? kNoName;
      const drawn = drawnName(name, frame);
      const colors = colorsOf(name, kindOf(tile.kind[i]), frame);
      raster.fill(x0, y0, x1, y0 + rowPixels, colors[drawn.matches ? kFadeSteps : kUnmatchedFade], top, bottom);
      if (isCut(tile.kind[i])) raster.hatch(x0, y0, x1, y0 + rowPixels, colors[kUnmatchedFade], top, bottom);
      if (!withLabels) continue;
      const left = Math.max(0, x0) / dpr;
      const width = Math.min(raster.width, x1) / dpr - left;
      const middle = y0 / dpr + block.rowHeight / 2;
      if (width >= kMinLabelPixels && middle - 5 >= clipTop && middle + 5 <= clipBottom)
        labels.push({ x: left, y: middle, width, name, small: block.rowHeight < kRowHeight });
    }
  });
}

// As much of the text as fits, with an ellipsis: starts with the number of letters that fit on average, and drops letters until
// they do. `widthOf` measures that many letters with the ellipsis.
export function fitLabel(text: string, textWidth: number, width: number, widthOf: (letters: number) => number): string {
  if (textWidth <= width) return text;
  let letters = Math.floor((width / textWidth) * text.length);
  while (letters >= kMinLetters && widthOf(letters) > width) letters -= 1;
  return letters < kMinLetters ? "" : `${text.slice(0, letters)}…`;
}

// The width of the first letters of a name with an ellipsis, measured once.
export function cutWidth(entry: NameEntry, letters: number, frame: SliceFrame): number {
  const { cuts } = drawnName(entry, frame);
  let width = cuts.get(letters);
  if (width === undefined) cuts.set(letters, (width = frame.measure(`${entry.text.slice(0, letters)}…`)));
  return width;
}

export interface Hit {
  type: "slice" | "run";
  startNs: number;
  durationNs: number;
  kind: number;
  cut: boolean; // starts before or ends after the recording
  name: string;
  row: number;
  ref: number; // of a slice
  count: number; // of a run
  busy: number;
}

// What is at a time and row of a lane, within `slackNs`. Slices win over runs, and shorter slices over longer ones.
export function hitTest(
  store: TileStore,
  frame: SliceFrame,
  lane: { id: number; firstNs: number; lastNs: number },
  row: number,
  atNs: number,
  slackNs: number,
): Hit | null {
  let best: Hit | null = null;
  let bestDistance = Infinity;
  for (const { tile, fromNs, toNs } of spansOf(store, frame, lane, { missing: false, coarser: false })) {
    if (atNs < fromNs - slackNs || atNs >= toNs + slackNs) continue;
    for (let i = 0; i < tile.sliceCount; ++i) {
      if (tile.row[i] !== row) continue;
      const distance = Math.max(tile.startNs[i] - atNs, atNs - tile.startNs[i] - tile.durationNs[i], 0);
      if (distance > slackNs || distance > bestDistance) continue;
      if (distance === bestDistance && best && best.durationNs <= tile.durationNs[i]) continue;
      bestDistance = distance;
      best = {
        type: "slice",
        startNs: tile.startNs[i],
        durationNs: tile.durationNs[i],
        kind: kindOf(tile.kind[i]),
        cut: isCut(tile.kind[i]),
        name: store.name(tile.name[i])?.text ?? "",
        row,
        ref: tile.ref[i],
        count: 1,
        busy: 1,
      };
    }
    if (best) continue;
    for (let i = 0; i < tile.runCount; ++i) {
      if (tile.runRow[i] !== row || atNs < tile.runStartNs[i] || atNs >= tile.runStartNs[i] + tile.runDurationNs[i])
        continue;
      best = {
        type: "run",
        startNs: tile.runStartNs[i],
        durationNs: tile.runDurationNs[i],
        kind: tile.runKind[i],
        cut: false,
        name: store.name(tile.runName[i])?.text ?? "",
        row,
        ref: 0,
        count: tile.runSlices[i],
        busy: tile.runBusy[i],
      };
    }
  }
  return best;
}
