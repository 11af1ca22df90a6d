// Draws a frame of the timeline onto its canvas. Called only when something changed.

import { cssColor, type Theme } from "../../page/theme";
import { kLabelColors, parseHex, packed, type Rgb } from "../slice_colors";
import {
  drawArrows,
  drawCounter,
  drawLabels,
  drawRange,
  drawRuler,
  drawStepLines,
  type Ink,
  kLabelFont,
  outline,
  rectOf,
} from "./draw_overlay";
import { drawLane, type DrawnState, type Label, type SliceFrame, type SlicePaint } from "./draw_slices";
import type { Block } from "./layout";
import { kRulerHeight, type TimelineModel } from "./model";
import { Raster } from "./raster";

const kMissingDelayMs = 400;

export interface HoverRect {
  lane: number;
  row: number;
  startNs: number;
  durationNs: number;
}

export class Painter {
  private readonly ctx: CanvasRenderingContext2D;
  private raster: Raster | null = null;
  private paint: SlicePaint | null = null;
  private ink: Ink | null = null;
  private inkOf: Theme | null = null;
  frame: SliceFrame | null = null;
  // Lanes and counters in the last frame: what to fetch.
  shownLanes: number[] = [];
  shownTracks: number[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
  ) {
    this.ctx = canvas.getContext("2d", { alpha: false })!;
  }

  draw(theme: Theme, hover: HoverRect | null): void {
    const { model, ctx } = this;
    const dpr = Math.max(1, window.devicePixelRatio || 1);
    const pixelWidth = Math.max(1, Math.round(model.width * dpr));
    const pixelHeight = Math.max(1, Math.round(model.height * dpr));
    if (this.canvas.width !== pixelWidth || this.canvas.height !== pixelHeight) {
      this.canvas.width = pixelWidth;
      this.canvas.height = pixelHeight;
    }
    if (this.raster?.width !== pixelWidth || this.raster.height !== pixelHeight)
      this.raster = new Raster(pixelWidth, pixelHeight);
    const ink = this.inkFor(theme);
    const back = parseHex(ink.bg);
    const frame = (this.frame = this.frameFor(theme, back, dpr));
    const layout = model.shown.layout.value;
    const state: DrawnState = { missing: false, coarser: false };
    const labels: Label[] = [];
    const counters: [Block & { type: "counter" }, number][] = [];
    this.shownLanes = [];
    this.shownTracks = [];

    this.raster.clear(packed(back));
    const pinnedBottom = kRulerHeight + layout.pinnedHeight;
    const part = (blocks: readonly Block[], offset: number, top: number, bottom: number) => {
      for (const block of blocks) {
        const y = block.y + offset;
        if (y + block.height < top || y >= bottom) continue;
        if (block.type === "lane") {
          this.shownLanes.push(block.lane.id);
          drawLane(this.raster!, model.store, frame, block, y, top, bottom, state, labels);
        } else if (block.type === "counter") {
          this.shownTracks.push(block.track.id);
          counters.push([block, y]);
        }
      }
    };
    part(layout.pinned, kRulerHeight, kRulerHeight, Math.min(pinnedBottom, model.height));
    part(layout.scrolled, pinnedBottom - model.scrollY.value, pinnedBottom, model.height);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.putImageData(this.raster.image!, 0, 0);
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);

    this.clipped(pinnedBottom, () => this.drawGroups(layout.scrolled, pinnedBottom, ink));
    drawStepLines(ctx, model, ink);
    for (const [block, y] of counters) {
      const draw = () => drawCounter(ctx, model, block, y, cssColor("--c1"), ink);
      if (block.pinned) draw();
      else this.clipped(pinnedBottom, draw);
    }
    drawLabels(ctx, labels, frame, ink);
    this.clipped(kRulerHeight, () => this.drawMarks(hover, ink));
    if (layout.pinnedHeight > 0) {
      ctx.fillStyle = ink.muted;
      ctx.fillRect(0, pinnedBottom - 2, model.width, 1);
    }
    drawRuler(ctx, model, ink);
    if (model.range.value) drawRange(ctx, model, model.range.value, ink);
    this.reportCoarse(state);
  }

  private drawGroups(blocks: readonly Block[], top: number, ink: Ink): void {
    for (const block of blocks) {
      if (block.type !== "group") continue;
      this.ctx.fillStyle = ink.raised;
      this.ctx.fillRect(0, top + block.y - this.model.scrollY.value, this.model.width, block.height - 3);
    }
  }

  private drawMarks(hover: HoverRect | null, ink: Ink): void {
    const { model, ctx } = this;
    const gap = model.gap.value;
    const gapRect = gap && rectOf(model, { ...gap, row: 0 });
    if (gapRect) {
      ctx.save();
      ctx.globalAlpha = 0.18;
      ctx.fillStyle = ink.bad;
      ctx.fillRect(gapRect.x, gapRect.y, gapRect.width, gapRect.height);
      ctx.restore();
      outline(ctx, gapRect, ink.bad, 1.5);
    }
    const hovered = hover && rectOf(model, hover);
    if (hovered) outline(ctx, hovered, ink.muted, 1);
    if (model.detail.value) drawArrows(ctx, model, model.detail.value.arrows, ink);
    const selected = model.selected.value && rectOf(model, model.selected.value);
    if (selected) outline(ctx, selected, ink.text, 2);
  }

  private clipped(top: number, draw: () => void): void {
    const { ctx, model } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, top, model.width, Math.max(0, model.height - top));
    ctx.clip();
    draw();
    ctx.restore();
  }

  // `paint` is the same object for as long as names look the same: names cache what was computed for it.
  private frameFor(theme: Theme, back: Rgb, dpr: number): SliceFrame {
    const { model, ctx } = this;
    const highlight = model.jumps.text.value.toLowerCase();
    if (this.paint?.theme !== theme || this.paint.highlight !== highlight)
      this.paint = { theme, back, highlight };
    const measure = (text: string) => {
      const before = ctx.font;
      ctx.font = kLabelFont;
      const { width } = ctx.measureText(text);
      ctx.font = before;
      return width;
    };
    return {
      view: model.view,
      endNs: model.lanes.endNs,
      maxLevel: model.maxLevel,
      width: model.width,
      dpr,
      paint: this.paint,
      measure,
    };
  }

  private inkFor(theme: Theme): Ink {
    if (this.ink && this.inkOf === theme) return this.ink;
    this.inkOf = theme;
    const c = cssColor;
    return (this.ink = {
      bg: c("--surface"),
      surface: c("--surface"),
      raised: c("--raised"),
      border: c("--border"),
      text: c("--text"),
      muted: c("--muted"),
      accent: c("--accent"),
      bad: c("--bad"),
      label: kLabelColors[theme],
      arrows: { launch: c("--accent"), backward: c("--c5"), flow: c("--c2") },
    });
  }

  // A report says that it has no finer tiles; a server is about to send them.
  private reportCoarse(state: DrawnState): void {
    const { model } = this;
    const coarse = state.coarser && model.stored;
    if (coarse !== model.coarse.value)
      window.setTimeout(() => (model.coarse.value = coarse), coarse ? kMissingDelayMs : 0);
  }
}
