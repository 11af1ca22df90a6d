// The whole trace in a strip: what each busy lane does, where the search hits, and which part is on the screen. Drag to move.

import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { cssColor, theme } from "../../page/theme";
import type { TileWish } from "../../data/tile_loader";
import { kindOf } from "../../data/tiles";
import { fadedColors, kFadeSteps, packed, parseHex } from "../../parts/slice_colors";
import { dependsOn } from "./depends_on";
import type { TimelineModel } from "./model";
import { Raster } from "./raster";
import { visibleTiles } from "./view";
import "./minimap.css";

const kHeight = 44;
const kMaxLanes = 12;
const kHitHeight = 10;
const kPixels = 1024; // the level is that of a strip this wide

// The busiest lanes, in their order.
function lanesOf(model: TimelineModel): number[] {
  const busiest = [...model.lanes.lanes].sort((a, b) => b.busyNs - a.busyNs).slice(0, kMaxLanes);
  const chosen = new Set(busiest.map((lane) => lane.id));
  return model.lanes.lanes.filter((lane) => chosen.has(lane.id)).map((lane) => lane.id);
}

const wishes = new WeakMap<TimelineModel, TileWish>();

export function minimapWish(model: TimelineModel): TileWish {
  const known = wishes.get(model);
  if (known) return known;
  const level = model.rootLevel(kPixels);
  const wish = {
    level,
    ...visibleTiles({ fromNs: 0, toNs: model.lanes.endNs }, level, model.lanes.endNs),
    lanes: lanesOf(model),
  };
  wishes.set(model, wish);
  return wish;
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
      if (picture?.key !== key || picture.tiles !== rootTiles(model)) {
        picture = { raster: paint(model, element.width, element.height, dpr), tiles: rootTiles(model), key };
      }
      const ctx = element.getContext("2d")!;
      ctx.putImageData(picture.raster.image!, 0, 0);
      ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
      drawWindow(ctx, model, width);
      drawHits(ctx, model, width);
    };
    const schedule = () => {
      if (scheduled === 0) scheduled = requestAnimationFrame(draw);
    };
    const stop = effect(() => {
      dependsOn(model.viewChanged, model.jumps.hits, model.tilesChanged, theme);
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

  // The middle of the view follows the pointer.
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
        aria-label="The whole trace; the part on the screen is framed"
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

// How many of the strip's tiles are there: it is painted again when that changes.
function rootTiles(model: TimelineModel): number {
  const { level, first, last, lanes } = minimapWish(model);
  let count = 0;
  for (const lane of lanes) for (let i = first; i <= last; ++i) count += model.store.has(level, lane, i) ? 1 : 0;
  return count;
}

// Each lane is a line of a few pixels; what nests deeper covers what is above it.
function paint(model: TimelineModel, width: number, height: number, dpr: number): Raster {
  const raster = new Raster(width, height);
  const back = parseHex(cssColor("--surface"));
  raster.clear(packed(back));
  const { level, first, last, lanes } = minimapWish(model);
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
    const stretches: Parameters<typeof model.store.resolve>[4] = [];
    for (let i = first; i <= last; ++i) model.store.resolve(level, lane, i, model.maxLevel, stretches);
    for (const { tile } of stretches) {
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

function drawHits(ctx: CanvasRenderingContext2D, model: TimelineModel, width: number): void {
  const density = model.jumps.hits.value?.density ?? [];
  const most = density.reduce((a, b) => Math.max(a, b), 0);
  if (most === 0) return;
  ctx.fillStyle = cssColor("--bad");
  density.forEach((hits, i) => {
    if (hits === 0) return;
    // The square root, so that a single hit is seen beside thousands.
    const height = 3 + (kHitHeight - 3) * Math.sqrt(hits / most);
    const x = (i / density.length) * width;
    ctx.fillRect(x, kHeight - height, Math.max(1.5, width / density.length), height);
  });
}

function drawWindow(ctx: CanvasRenderingContext2D, model: TimelineModel, width: number): void {
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
