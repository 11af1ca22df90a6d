import { expect, test } from "vitest";
import type { Lane } from "../../data/answers";
import { buildTiles, type BuiltTile } from "../../data/tile_builder";
import { TileStore } from "../../data/tile_store";
import { parseTiles } from "../../data/tiles";
import { packed, sliceColor } from "../slice_colors";
import { drawLane, fitLabel, hitTest, type Label, type SliceFrame } from "./draw_slices";
import { kRowHeight } from "./layout";
import { Raster } from "./raster";

const kWhite = 0xffffffff;
const lane: Lane = {
  id: 0,
  group: "g",
  kind: "thread",
  name: "t",
  rows: 2,
  slices: 9,
  firstNs: 0,
  lastNs: 1024,
  busyNs: 1,
};
const block = {
  type: "lane" as const,
  key: "l0",
  y: 0,
  height: 2 * kRowHeight,
  rowHeight: kRowHeight,
  collapsed: false,
  pinned: false,
  lane,
};

// 512 ns over 512 pixels: level 0, tiles of 512 ns.
function draw(tiles: BuiltTile[], level = 0, highlight = "") {
  const store = new TileStore(1e9, 20);
  store.put(parseTiles(buildTiles(level, tiles, { 1: "one", 2: "two" })));
  const paint = { theme: "light" as const, back: [255, 255, 255] as const, highlight };
  const frame: SliceFrame = {
    view: { fromNs: 0, toNs: 512 },
    endNs: 1024,
    maxLevel: 20,
    width: 512,
    dpr: 1,
    paint,
    measure: (text) => text.length * 6,
  };
  const raster = new Raster(512, 2 * kRowHeight);
  raster.clear(kWhite);
  const labels: Label[] = [];
  const state = { missing: false, coarser: false };
  drawLane(raster, store, frame, block, 0, 0, 2 * kRowHeight, state, labels);
  const at = (x: number, row: number) => raster.pixels[(row * kRowHeight + 5) * 512 + x];
  return { at, labels, state, store, frame };
}

test("a slice that starts before the recording is hatched, and keeps its kind", () => {
  const kernel = { startNs: 100, durationNs: 200, name: 1, row: 0 };
  const whole = draw([{ lane: 0, index: 0, slices: [{ ...kernel, kind: 16 }] }]);
  const cut = draw([{ lane: 0, index: 0, slices: [{ ...kernel, kind: 16 | 0x40 }] }]);
  const colors = (picture: typeof whole) => new Set(Array.from({ length: 100 }, (_, i) => picture.at(150 + i, 0)));
  expect(colors(whole).size).toBe(1);
  expect(colors(cut).size).toBe(2);
  expect(colors(cut)).toContain(whole.at(150, 0));
  expect(hitTest(cut.store, cut.frame, lane, 0, 150, 0)).toMatchObject({ kind: 16, cut: true });
});

test("a slice is drawn in its row, from its start to its end, in its color", () => {
  const { at, labels, state } = draw([
    { lane: 0, index: 0, slices: [{ startNs: 100, durationNs: 200, name: 1, row: 1 }] },
  ]);
  expect(at(100, 1)).toBe(packed(sliceColor(0, "one", "light")));
  expect([at(99, 1), at(300, 1), at(150, 0)]).toEqual([kWhite, kWhite, kWhite]);
  expect(labels.map((label) => [label.x, label.name.text])).toEqual([[100, "one"]]);
  expect(state).toEqual({ missing: false, coarser: false });
});

test("a slice of no duration and a nearly idle run are visible", () => {
  const { at } = draw([
    {
      lane: 0,
      index: 0,
      slices: [{ startNs: 10, durationNs: 0, name: 1 }],
      runs: [{ startNs: 50, durationNs: 1, name: 2, busy: 0.001, count: 1 }],
    },
  ]);
  expect(at(10, 0)).not.toBe(kWhite);
  expect(at(50, 0)).not.toBe(kWhite);
});

test("a busy run is stronger than a nearly idle one", () => {
  const runs = [0.05, 1].map((busy, i) => ({ startNs: 50 + i, durationNs: 1, name: 2, busy, count: 1 }));
  const { at } = draw([{ lane: 0, index: 0, runs }]);
  const green = (pixel: number) => pixel & 0xff;
  expect(green(at(51, 0))).toBeLessThan(green(at(50, 0)));
});

test("a slice that spans two tiles has one label", () => {
  const slices = [{ startNs: 400, durationNs: 400, name: 1 }];
  const store = draw([
    { lane: 0, index: 0, slices },
    { lane: 0, index: 1, slices },
  ]);
  const wide = { ...store.frame, view: { fromNs: 0, toNs: 1000 }, width: 1000 };
  const raster = new Raster(1000, 40);
  const labels: Label[] = [];
  drawLane(raster, store.store, wide, block, 0, 0, 40, { missing: false, coarser: false }, labels);
  expect(labels).toHaveLength(1);
});

test("a coarser tile is drawn in place of a missing one, and reported", () => {
  const { at, state } = draw(
    [{ lane: 0, index: 0, runs: [{ startNs: 64, durationNs: 16, name: 1, busy: 0.5, count: 3 }] }],
    4,
  );
  expect(at(70, 0)).not.toBe(kWhite);
  expect(state).toEqual({ missing: true, coarser: true });
});

test("a search fades what does not match", () => {
  const slices = [
    { startNs: 0, durationNs: 10, name: 1 },
    { startNs: 20, durationNs: 10, name: 2 },
  ];
  const { at } = draw([{ lane: 0, index: 0, slices }], 0, "tw");
  expect(at(25, 0)).toBe(packed(sliceColor(0, "two", "light")));
  expect(at(5, 0)).not.toBe(packed(sliceColor(0, "one", "light")));
});

test("hit testing finds the slice, a short one close by, and a run", () => {
  const { store, frame } = draw([
    {
      lane: 0,
      index: 0,
      slices: [
        { startNs: 100, durationNs: 50, name: 1, ref: 5 },
        { startNs: 200, durationNs: 0, name: 2, ref: 6 },
      ],
      runs: [{ startNs: 300, durationNs: 1, name: 2, busy: 0.5, count: 4 }],
    },
  ]);
  expect(hitTest(store, frame, lane, 0, 120, 3)).toMatchObject({ type: "slice", ref: 5, name: "one" });
  expect(hitTest(store, frame, lane, 0, 202, 3)).toMatchObject({ type: "slice", ref: 6 });
  expect(hitTest(store, frame, lane, 0, 300.5, 3)).toMatchObject({ type: "run", count: 4 });
  expect(hitTest(store, frame, lane, 1, 120, 3)).toBeNull();
  expect(hitTest(store, frame, lane, 0, 400, 3)).toBeNull();
});

test("labels are truncated with an ellipsis, and left out where hardly a letter fits", () => {
  const widthOf = (letters: number) => 6 * letters + 6;
  expect(fitLabel("aten::mm", 48, 60, widthOf)).toBe("aten::mm");
  expect(fitLabel("aten::addmm", 66, 40, widthOf)).toBe("aten:…");
  expect(fitLabel("aten::addmm", 66, 10, widthOf)).toBe("");
  // Wide letters at the start: fewer fit than on average.
  expect(fitLabel("mmmm::iiii", 66, 40, (letters) => 10 * letters)).toBe("mmmm…");
});
