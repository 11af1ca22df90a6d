// Draws the timeline of chosen ranks: work, waiting and moving on each lane, arrows between them, the critical path across.

import type { JobLayout, JobTimeline } from "../../data/job_answers";
import type { AxisWindow } from "../../data/job_client";
import { cssColor } from "../../page/theme";
import { formatTime } from "../../text/format";
import { scaledContext } from "./canvas";
import { arrowsOf, kLanePx, kRulerPx, pathLines } from "./lanes";

const kBarPx = 16;
const kPathPx = 3;

export const kLaneColors = {
  work: "--c3",
  wait: "--c2",
  move: "--c1",
  unknown: "--c8",
  path: "--bad",
} as const;

export interface Scene {
  timeline: JobTimeline;
  layout: JobLayout;
  window: AxisWindow;
  width: number;
  height: number;
  selected: number; // id of a collective; -1 none
  showPath: boolean;
  showArrows: boolean;
}

export function drawLanes(canvas: HTMLCanvasElement, scene: Scene): void {
  const ctx = scaledContext(canvas, scene.width, scene.height);
  const { fromNs, toNs } = scene.window;
  const x = (ns: number) => ((ns - fromNs) / (toNs - fromNs)) * scene.width;
  const color = Object.fromEntries(
    Object.entries(kLaneColors).map(([name, variable]) => [name, cssColor(variable)]),
  ) as Record<keyof typeof kLaneColors, string>;
  drawRuler(ctx, scene, x);
  scene.timeline.lanes.forEach((lane, at) => {
    const top = kRulerPx + at * kLanePx + 4;
    // A lane is work from its first moment to its last, until a collective says otherwise.
    const left = Math.max(0, x(scene.timeline.fromNs));
    ctx.globalAlpha = 0.35;
    ctx.fillStyle = color.work;
    ctx.fillRect(left, top, Math.min(scene.width, x(scene.timeline.toNs)) - left, kBarPx);
    ctx.globalAlpha = 1;
    const binNs = (scene.timeline.toNs - scene.timeline.fromNs) / Math.max(1, lane.bins.length);
    lane.bins.forEach(([waitNs, moveNs], bin) => {
      const start = scene.timeline.fromNs + bin * binNs;
      if (start + binNs < fromNs || start > toNs) return;
      const wide = Math.max(1, (binNs / (toNs - fromNs)) * scene.width + 0.5);
      const waits = Math.min(1, waitNs / binNs) * kBarPx;
      const moves = Math.min(1, moveNs / binNs) * kBarPx;
      ctx.fillStyle = color.move;
      ctx.fillRect(x(start), top + kBarPx - moves, wide, moves);
      ctx.fillStyle = color.wait;
      ctx.fillRect(x(start), top + kBarPx - moves - waits, wide, waits);
    });
    for (const [start, moves, end, id] of lane.pieces) {
      if (end < fromNs || start > toNs) continue;
      const known = id >= 0;
      const a = x(start);
      const b = x(moves);
      const c = Math.max(x(end), a + 1);
      if (known && b > a) {
        ctx.fillStyle = color.wait;
        ctx.fillRect(a, top, b - a, kBarPx);
      }
      ctx.fillStyle = known ? color.move : color.unknown;
      ctx.fillRect(b, top, Math.max(1, c - b), kBarPx);
      if (known && id === scene.selected) {
        ctx.strokeStyle = cssColor("--text");
        ctx.lineWidth = 2;
        ctx.strokeRect(a, top - 1, c - a, kBarPx + 2);
      }
    }
  });
  if (scene.showArrows) drawArrows(ctx, scene, x);
  if (scene.showPath) drawPath(ctx, scene, x, color.path);
}

function drawRuler(ctx: CanvasRenderingContext2D, scene: Scene, x: (ns: number) => number): void {
  const { fromNs, toNs } = scene.window;
  const stepNs = niceStep((toNs - fromNs) / Math.max(2, scene.width / 110));
  ctx.fillStyle = cssColor("--muted");
  ctx.strokeStyle = cssColor("--border");
  ctx.lineWidth = 1;
  const zero = scene.layout.fromNs;
  for (let at = Math.ceil((fromNs - zero) / stepNs) * stepNs; at + zero <= toNs; at += stepNs) {
    const left = Math.round(x(at + zero)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(left, kRulerPx - 5);
    ctx.lineTo(left, scene.height);
    ctx.stroke();
    ctx.fillText(formatTime(at, stepNs, toNs - zero), left + 3, kRulerPx / 2 - 1);
  }
  ctx.strokeStyle = cssColor("--muted");
  ctx.setLineDash([3, 3]);
  for (const [, start] of scene.layout.steps) {
    if (start < fromNs || start > toNs) continue;
    ctx.beginPath();
    ctx.moveTo(x(start), kRulerPx);
    ctx.lineTo(x(start), scene.height);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

// 1, 2 or 5 times a power of ten.
export function niceStep(leastNs: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, leastNs)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= leastNs) ?? 10);
}

function drawArrows(ctx: CanvasRenderingContext2D, scene: Scene, x: (ns: number) => number): void {
  ctx.strokeStyle = ctx.fillStyle = cssColor("--text");
  ctx.lineWidth = 1;
  ctx.globalAlpha = 0.55;
  for (const arrow of arrowsOf(scene.timeline, scene.window, scene.width)) {
    const down = arrow.toLane > arrow.fromLane;
    const fromY = kRulerPx + arrow.fromLane * kLanePx + (down ? 4 + kBarPx : 4);
    const toY = kRulerPx + arrow.toLane * kLanePx + (down ? 4 : 4 + kBarPx);
    const head = down ? -5 : 5;
    ctx.beginPath();
    ctx.moveTo(x(arrow.fromNs), fromY);
    ctx.lineTo(x(arrow.toNs), toY);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x(arrow.toNs), toY);
    ctx.lineTo(x(arrow.toNs) - 3, toY + head);
    ctx.lineTo(x(arrow.toNs) + 3, toY + head);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function drawPath(ctx: CanvasRenderingContext2D, scene: Scene, x: (ns: number) => number, color: string): void {
  const y = (lane: number) => kRulerPx + lane * kLanePx + 4 + kBarPx + 3;
  ctx.strokeStyle = color;
  ctx.lineWidth = kPathPx;
  let before: { lane: number; toNs: number } | null = null;
  for (const line of pathLines(scene.timeline.path, scene.timeline.lanes)) {
    if (line.lane < 0) {
      before = null; // through a rank that is not shown
      continue;
    }
    if (before && before.lane !== line.lane) {
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(x(before.toNs), y(before.lane));
      ctx.lineTo(x(line.fromNs), y(line.lane));
      ctx.stroke();
      ctx.lineWidth = kPathPx;
    }
    ctx.setLineDash(line.kind === 0 ? [] : [4, 3]);
    ctx.beginPath();
    ctx.moveTo(x(line.fromNs), y(line.lane));
    ctx.lineTo(Math.max(x(line.toNs), x(line.fromNs) + 1), y(line.lane));
    ctx.stroke();
    ctx.setLineDash([]);
    before = { lane: line.lane, toNs: line.toNs };
  }
}
