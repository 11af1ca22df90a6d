// What is drawn over the slices: labels, ruler and steps, range, selection, hover, arrows, counters. All in CSS pixels.

import type { Arrow, FoundSlice, StepMark } from "../../data/answers";
import { formatDuration, formatNumber, formatBytes, formatTime } from "../../text/format";
import { cutWidth, drawnName, fitLabel, type Label, type SliceFrame } from "./draw_slices";
import { type Block, placeOf } from "./layout";
import { kRulerHeight, type Range, type TimelineModel } from "./model";
import { rulerStepNs, timeToX } from "./view";

const kFontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
export const kLabelFont = `11px ${kFontFamily}`;
const kSmallFont = `10px ${kFontFamily}`;
const kSmallScale = 10 / 11;

// The theme's colors for the canvas.
export interface Ink {
  bg: string;
  surface: string;
  raised: string;
  border: string;
  text: string;
  muted: string;
  accent: string;
  bad: string;
  label: string;
  arrows: Record<string, string>;
}

const kStepBand = 16;
const kTickPixels = 90;
const kGripHeight = 12;

export function drawLabels(ctx: CanvasRenderingContext2D, labels: readonly Label[], frame: SliceFrame, ink: Ink): void {
  let small = false;
  ctx.font = kLabelFont;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const label of labels) {
    const { x, y, width, name } = label;
    const drawn = drawnName(name, frame);
    if (label.small !== small) {
      small = label.small;
      ctx.font = small ? kSmallFont : kLabelFont;
    }
    ctx.fillStyle = drawn.matches ? ink.label : ink.muted;
    const scale = small ? kSmallScale : 1;
    const text = fitLabel(
      name.text,
      drawn.width * scale,
      width - 7,
      (letters) => cutWidth(name, letters, frame) * scale,
    );
    if (text) ctx.fillText(text, x + 4, y);
  }
}

// The ruler, with a band of steps above it.
export function drawRuler(ctx: CanvasRenderingContext2D, model: TimelineModel, ink: Ink): void {
  const { view, width } = model;
  ctx.fillStyle = ink.surface;
  ctx.fillRect(0, 0, width, kRulerHeight);
  ctx.font = kLabelFont;
  ctx.textBaseline = "middle";
  drawSteps(ctx, model, ink);
  const step = rulerStepNs(view, width, kTickPixels);
  const lastNs = Math.min(view.toNs, model.lanes.endNs);
  const badge = model.range.value && rangeBadge(ctx, model, model.range.value);
  ctx.fillStyle = ink.muted;
  for (let n = Math.ceil(Math.max(0, view.fromNs) / step); n * step <= lastNs; ++n) {
    const x = Math.round(timeToX(view, width, n * step));
    ctx.fillRect(x, kRulerHeight - 6, 1, 6);
    const text = formatTime(n * step, step, lastNs);
    const textEnd = x + 4 + ctx.measureText(text).width;
    const isHidden = badge && x + 4 < badge.to && textEnd > badge.from;
    if (textEnd <= width && !isHidden) ctx.fillText(text, x + 4, kRulerHeight - 10);
  }
  ctx.fillStyle = ink.border;
  ctx.fillRect(0, kRulerHeight - 1, width, 1);
}

function drawSteps(ctx: CanvasRenderingContext2D, model: TimelineModel, ink: Ink): void {
  const { view, width } = model;
  let labelEnd = -Infinity;
  model.lanes.steps.forEach((step, i) => {
    const x0 = Math.max(0, timeToX(view, width, step.startNs));
    const x1 = Math.min(width, timeToX(view, width, step.startNs + step.durationNs));
    if (x1 < 0 || x0 > width || x1 < x0) return;
    ctx.fillStyle = i % 2 === 0 ? ink.raised : ink.bg;
    ctx.fillRect(x0, 0, Math.max(1, x1 - x0), kStepBand);
    const text = x1 - x0 > 60 ? `step ${step.number}` : String(step.number);
    const textWidth = ctx.measureText(text).width;
    if (textWidth + 6 > x1 - x0 || x0 < labelEnd) return;
    ctx.fillStyle = ink.muted;
    ctx.fillText(text, x0 + 4, kStepBand / 2 + 1);
    labelEnd = x0 + textWidth + 6;
  });
}

// Faint lines through all lanes where steps start, unless they are too dense.
export function drawStepLines(ctx: CanvasRenderingContext2D, model: TimelineModel, ink: Ink): void {
  const { view, width, height } = model;
  const { steps } = model.lanes;
  const isSparse =
    steps.length < 2 || timeToX(view, width, steps[1].startNs) - timeToX(view, width, steps[0].startNs) > 12;
  if (!isSparse) return;
  ctx.fillStyle = ink.border;
  const line = (ns: number) => {
    const x = Math.round(timeToX(view, width, ns));
    if (x >= 0 && x < width) ctx.fillRect(x, kRulerHeight, 1, height);
  };
  steps.forEach((step: StepMark) => line(step.startNs));
}

export function drawRange(ctx: CanvasRenderingContext2D, model: TimelineModel, range: Range, ink: Ink): void {
  const { view, width, height } = model;
  const x0 = timeToX(view, width, range.fromNs);
  const x1 = timeToX(view, width, range.toNs);
  ctx.save();
  ctx.globalAlpha = 0.12;
  ctx.fillStyle = ink.accent;
  ctx.fillRect(x0, kRulerHeight, x1 - x0, height);
  ctx.globalAlpha = 1;
  for (const x of [Math.round(x0), Math.round(x1)]) {
    ctx.fillRect(x, 0, 1, height);
    ctx.fillRect(x - 2, 2, 5, kGripHeight); // a grip: the edge can be dragged
  }
  const badge = rangeBadge(ctx, model, range);
  if (badge) {
    ctx.fillRect(badge.from, kRulerHeight - 18, badge.to - badge.from, 16);
    ctx.fillStyle = ink.surface;
    ctx.textAlign = "center";
    ctx.fillText(badge.text, (badge.from + badge.to) / 2, kRulerHeight - 9.5);
    ctx.textAlign = "left";
  }
  ctx.restore();
}

interface Badge {
  from: number;
  to: number;
  text: string;
}

// The duration of the range, centered in its visible part; null if none of it is visible.
function rangeBadge(ctx: CanvasRenderingContext2D, model: TimelineModel, range: Range): Badge | null {
  const { view, width } = model;
  const text = formatDuration(range.toNs - range.fromNs);
  const half = ctx.measureText(text).width / 2 + 6;
  const left = Math.max(0, timeToX(view, width, range.fromNs));
  const right = Math.min(width, timeToX(view, width, range.toNs));
  if (right < left) return null;
  const middle = Math.min(Math.max((left + right) / 2, half), width - half);
  return { from: middle - half, to: middle + half, text };
}

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

// A slice's rectangle on the canvas, possibly off screen; null if its lane is not shown.
export function rectOf(
  model: TimelineModel,
  slice: Pick<FoundSlice, "lane" | "row" | "startNs" | "durationNs">,
): Rect | null {
  const lane = model.laneOf.get(slice.lane);
  const place = lane && placeOf(model.shown.layout.value, lane, slice.row);
  if (!place) return null;
  const x = timeToX(model.view, model.width, slice.startNs);
  const x1 = timeToX(model.view, model.width, slice.startNs + slice.durationNs);
  const y =
    kRulerHeight + (place.pinned ? place.y : model.shown.layout.value.pinnedHeight + place.y - model.scrollY.value);
  return { x, y, width: Math.max(1, x1 - x), height: place.height };
}

export function outline(ctx: CanvasRenderingContext2D, rect: Rect, color: string, thick: number): void {
  // Far outside the canvas, coordinates lose precision.
  const left = Math.max(-10, rect.x);
  const right = Math.min(ctx.canvas.width + 10, rect.x + rect.width);
  if (right < left) return;
  ctx.strokeStyle = color;
  ctx.lineWidth = thick;
  ctx.strokeRect(left, rect.y + thick / 2 - 0.5, Math.max(2, right - left - 1), Math.max(2, rect.height - thick));
}

export function drawArrows(
  ctx: CanvasRenderingContext2D,
  model: TimelineModel,
  arrows: readonly Arrow[],
  ink: Ink,
): void {
  for (const arrow of arrows) {
    const from = rectOf(model, arrow.from);
    const to = rectOf(model, arrow.to);
    // From an operator to the launch inside it: the nesting already shows that.
    if (!from || !to || encloses(arrow.from, arrow.to)) continue;
    // From the end of the cause (or its start, if the effect starts before that) to the start of the effect.
    const fromEnd = arrow.from.startNs + arrow.from.durationNs <= arrow.to.startNs;
    const x0 = clampX(fromEnd ? from.x + from.width : from.x + Math.min(2, from.width / 2), model.width);
    const x1 = clampX(to.x, model.width);
    const y0 = from.y + from.height / 2;
    const y1 = to.y + to.height / 2;
    const bend = Math.max(16, Math.min(120, Math.abs(x1 - x0) / 2));
    ctx.strokeStyle = ctx.fillStyle = ink.arrows[arrow.kind] ?? ink.accent;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7, y1 - 4);
    ctx.lineTo(x1 - 7, y1 + 4);
    ctx.fill();
  }
}

function encloses(outer: FoundSlice, inner: FoundSlice): boolean {
  return (
    outer.lane === inner.lane &&
    outer.startNs <= inner.startNs &&
    outer.startNs + outer.durationNs >= inner.startNs + inner.durationNs
  );
}

function clampX(x: number, width: number): number {
  return Math.min(Math.max(x, -2000), width + 2000);
}

export function formatCounter(value: number | null, unit: string): string {
  if (value === null) return "–";
  if (/^(b|bytes)$/i.test(unit)) return formatBytes(value);
  if (unit === "bytes/s") return `${formatBytes(value)}/s`;
  return unit ? `${formatNumber(value)} ${unit}` : formatNumber(value);
}

export function drawCounter(
  ctx: CanvasRenderingContext2D,
  model: TimelineModel,
  block: Block & { type: "counter" },
  y: number,
  color: string,
  ink: Ink,
): void {
  const { view, width } = model;
  const bins = model.counters.get(block.track.id);
  const base = y + block.height - 1;
  ctx.fillStyle = ink.border;
  ctx.fillRect(0, base, width, 1);
  if (!bins) return;
  const low = Math.min(0, block.track.min ?? 0);
  const high = Math.max(block.track.max ?? 0, low + 1e-12);
  const toY = (value: number) => base - ((value - low) / (high - low)) * (block.height - 8);
  ctx.beginPath();
  let open = false;
  let lastX = 0;
  const first = Math.max(0, Math.floor((view.fromNs - bins.fromNs) / bins.binNs));
  const end = Math.min(bins.max.length, Math.ceil((view.toNs - bins.fromNs) / bins.binNs) + 1);
  for (let i = first; i < end; ++i) {
    const value = bins.max[i];
    if (value === null || value === undefined) continue;
    const x0 = clampX(timeToX(view, width, bins.fromNs + i * bins.binNs), width);
    const x1 = clampX(timeToX(view, width, bins.fromNs + (i + 1) * bins.binNs), width);
    if (!open) ctx.moveTo(x0, base);
    open = true;
    ctx.lineTo(x0, toY(value));
    ctx.lineTo(x1, toY(value));
    lastX = x1;
  }
  if (!open) return;
  ctx.lineTo(lastX, base);
  ctx.closePath();
  ctx.save();
  ctx.globalAlpha = 0.35;
  ctx.fillStyle = color;
  ctx.fill();
  ctx.restore();
  ctx.strokeStyle = color;
  ctx.lineWidth = 1;
  ctx.stroke();
}

// A counter's range of values at a time, for the tooltip.
export function counterAt(
  model: TimelineModel,
  track: number,
  ns: number,
): { min: number | null; max: number | null } | null {
  const bins = model.counters.get(track);
  if (!bins) return null;
  const i = Math.floor((ns - bins.fromNs) / bins.binNs);
  return i < 0 || i >= bins.max.length ? null : { min: bins.min[i], max: bins.max[i] };
}
