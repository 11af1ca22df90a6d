// The whole trace in a strip: the busiest lanes, the matches of the search, and the visible part. Drag to move it.

import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { TileRange } from "../../data/tile_loader";
import type { TileSpan } from "../../data/tile_store";
import { kindOf } from "../../data/tiles";
import { cssColor, theme } from "../../page/theme";
import { fadedColors, kFadeSteps, packed, parseHex } from "../slice_colors";
import { dependsOn } from "./depends_on";
import type { TimelineModel } from "./model";
import { Raster } from "./raster";
import { visibleTiles } from "./view";
import "./minimap.css";

const kHeight = 44;
const kMaxLanes = 12;
const kMatchHeight = 10;
const kPixels = 1024; // determines the level of its tiles

// The busiest lanes, in the order of the timeline.
function lanesOf(model: TimelineModel): number[] {
  const busiest = [...model.lanes.lanes].sort((a, b) => b.busyNs - a.busyNs).slice(0, kMaxLanes);
  const chosen = new Set(busiest.map((lane) => lane.id));
  return model.lanes.lanes.filter((lane) => chosen.has(lane.id)).map((lane) => lane.id);
}

const tileRanges = new WeakMap<TimelineModel, TileRange>();

export function minimapTiles(model: TimelineModel): TileRange {
  const known = tileRanges.get(model);
  if (known) return known;
  const level = model.rootLevel(kPixels);
  const range = {
    level,
    ...visibleTiles({ fromNs: 0, toNs: model.lanes.endNs }, level, model.lanes.endNs),
    lanes: lanesOf(model),
  };
  tileRanges.set(model, range);
  return range;
}

export function Minimap(props: { model: TimelineModel }): JSX.Element {
  const { model } = props;
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const element = canvas.current!;
    let picture: { raster: Raster; tiles: number; key: string } | null = null;
    let scheduled = 0;
    const draw = () => {
      scheduled = 0;
      const dpr = Math.max(1, window.devicePixelRatio || 1);
      const width = Math.max(1, element.clientWidth);
      element.width = Math.round(width * dpr);
      element.height = Math.round(kHeight * dpr);
      const key = `${element.width} ${theme.value}`;
      if (picture?.key !== key || picture.tiles !== loadedTiles(model)) {
        picture = { raster: paint(model, element.width, element.height, dpr), tiles: loadedTiles(model), key };
      }
      const ctx = element.getContext("2d")!;
      ctx.putImageData(picture.raster.image!, 0, 0);
      ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
      drawFrame(ctx, model, width);
      drawMatches(ctx, model, width);
    };
    const schedule = () => {
      if (scheduled === 0) scheduled = requestAnimationFrame(draw);
    };
    const stop = effect(() => {
      dependsOn(model.viewChanged, model.jumps.matches, model.tilesChanged, theme);
      schedule();
    });
    const resize = new ResizeObserver(schedule);
    resize.observe(element);
    return () => {
      stop();
      resize.disconnect();
      cancelAnimationFrame(scheduled);
    };
  }, [model]);

  // Centers the view at the pointer.
  const move = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const atNs = ((event.clientX - box.left) / box.width) * model.lanes.endNs;
    const half = (model.view.toNs - model.view.fromNs) / 2;
    model.setView({ fromNs: atNs - half, toNs: atNs + half });
  };
  return (
    <div class="timeline-minimap">
      <span class="minimap-label muted">Whole trace</span>
      <canvas
        ref={canvas}
        style={{ height: `${kHeight}px` }}
        role="img"
        aria-label="The whole trace, with a frame around the visible part"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          move(event);
        }}
        onPointerMove={(event) => {
          if (event.buttons & 1) move(event);
        }}
      />
    </div>
  );
}

// How many of the strip's tiles are loaded: it is painted again when that changes.
function loadedTiles(model: TimelineModel): number {
  const { level, first, last, lanes } = minimapTiles(model);
  let count = 0;
  for (const lane of lanes) for (let i = first; i <= last; ++i) count += model.store.has(level, lane, i) ? 1 : 0;
  return count;
}

// Each lane is a line of a few pixels; nested slices cover their parents.
function paint(model: TimelineModel, width: number, height: number, dpr: number): Raster {
  const raster = new Raster(width, height);
  const back = parseHex(cssColor("--surface"));
  raster.clear(packed(back));
  const { level, first, last, lanes } = minimapTiles(model);
  const scale = width / Math.max(1, model.lanes.endNs);
  const known = new Map<number, Uint32Array>();
  const colorsOf = (kind: number, name: number) => {
    const key = name * 32 + kind;
    let colors = known.get(key);
    if (!colors) known.set(key, (colors = fadedColors(kind, model.store.name(name)?.text ?? "", theme.value, back)));
    return colors;
  };
  const line = Math.max(1, Math.floor((height - 4 * dpr) / Math.max(1, lanes.length)));
  lanes.forEach((lane, nth) => {
    const y = 2 * dpr + nth * line;
    const spans: TileSpan[] = [];
    for (let i = first; i <= last; ++i) model.store.resolve(level, lane, i, model.maxLevel, spans);
    for (const { tile } of spans) {
      const bar = (startNs: number, durationNs: number, kind: number, name: number, fade: number) => {
        const x0 = Math.floor(startNs * scale);
        const x1 = Math.max(x0 + 1, Math.floor((startNs + durationNs) * scale));
        raster.fill(x0, y, x1, y + line - (line > 3 ? 1 : 0), colorsOf(kind, name)[fade]);
      };
      for (let i = 0; i < tile.runCount; ++i)
        bar(
          tile.runStartNs[i],
          tile.runDurationNs[i],
          tile.runKind[i],
          tile.runName[i],
          6 + Math.round(9 * Math.min(1, tile.runBusy[i])),
        );
      for (let i = 0; i < tile.sliceCount; ++i)
        bar(tile.startNs[i], tile.durationNs[i], kindOf(tile.kind[i]), tile.name[i], kFadeSteps);
    }
  });
  return raster;
}

function drawMatches(ctx: CanvasRenderingContext2D, model: TimelineModel, width: number): void {
  const density = model.jumps.matches.value?.density ?? [];
  const most = density.reduce((a, b) => Math.max(a, b), 0);
  if (most === 0) return;
  ctx.fillStyle = cssColor("--bad");
  density.forEach((matches, i) => {
    if (matches === 0) return;
    // The square root, so that a single match is visible beside thousands.
    const height = 3 + (kMatchHeight - 3) * Math.sqrt(matches / most);
    const x = (i / density.length) * width;
    ctx.fillRect(x, kHeight - height, Math.max(1.5, width / density.length), height);
  });
}

function drawFrame(ctx: CanvasRenderingContext2D, model: TimelineModel, width: number): void {
  const { fromNs, toNs } = model.view;
  const x0 = (Math.max(0, fromNs) / model.lanes.endNs) * width;
  const x1 = (Math.min(model.lanes.endNs, toNs) / model.lanes.endNs) * width;
  ctx.save();
  ctx.fillStyle = cssColor("--bg");
  ctx.globalAlpha = 0.6;
  ctx.fillRect(0, 0, x0, kHeight);
  ctx.fillRect(x1, 0, width - x1, kHeight);
  ctx.restore();
  ctx.strokeStyle = cssColor("--accent");
  ctx.lineWidth = 1.5;
  ctx.strokeRect(Math.min(x0, width - 4) + 0.75, 0.75, Math.max(3, x1 - x0 - 1.5), kHeight - 1.5);
}
