import { expect, test } from "vitest";
import type { Lane, Lanes } from "../../data/answers";
import {
  blockAt,
  collapsedByDefault,
  compactByDefault,
  kCollapsedHeight,
  kCompactRowHeight,
  kCounterHeight,
  kGroupHeight,
  kRowHeight,
  type LaneOptions,
  layOut,
  placeOf,
} from "./layout";

const lane = (id: number, group: string, name: string, rows: number): Lane => ({
  id,
  group,
  kind: "thread",
  name,
  rows,
  slices: 1,
  firstNs: 0,
  lastNs: 9,
  busyNs: 1,
});
const lanes: Lanes = {
  endNs: 10,
  lanes: [lane(0, "python (1)", "main", 3), lane(1, "python (1)", "worker", 1), lane(2, "GPU 0", "stream 7", 2)],
  counters: [{ id: 0, group: "GPU 0", name: "power", unit: "W", min: 0, max: 9, samples: 2 }],
  steps: [],
  sampled: [],
};
const plain: LaneOptions = { filter: "", hidden: new Set(), pinned: new Set(), collapsed: new Set(), compact: false };
const keys = (blocks: { key: string }[]) => blocks.map((block) => block.key);

test("groups hold their lanes, and counters come below them", () => {
  const { scrolled, pinned } = layOut(lanes, plain);
  expect(keys(scrolled)).toEqual(["gpython (1)", "l0", "l1", "gGPU 0", "l2", "c0"]);
  expect(pinned).toEqual([]);
  expect(scrolled[1].y).toBe(kGroupHeight);
  expect(scrolled[1].height).toBe(3 * kRowHeight);
  expect(scrolled[5].height).toBe(kCounterHeight);
});

test("blocks do not overlap and end where the layout ends", () => {
  const { scrolled, height } = layOut(lanes, plain);
  let y = 0;
  for (const block of scrolled) {
    expect(block.y).toBeGreaterThanOrEqual(y);
    y = block.y + block.height;
  }
  expect(height).toBeGreaterThanOrEqual(y);
});

test("a pinned lane moves from its group to the strip at the top, and an empty group disappears", () => {
  const { scrolled, pinned, pinnedHeight } = layOut(lanes, { ...plain, pinned: new Set(["l2", "c0"]) });
  expect(keys(pinned)).toEqual(["l2", "c0"]);
  expect(keys(scrolled)).toEqual(["gpython (1)", "l0", "l1"]);
  expect(pinnedHeight).toBeGreaterThan(2 * kRowHeight + kCounterHeight);
});

test("hidden and filtered lanes are left out; the filter also matches groups", () => {
  expect(keys(layOut(lanes, { ...plain, hidden: new Set(["l0"]) }).scrolled)).toEqual([
    "gpython (1)",
    "l1",
    "gGPU 0",
    "l2",
    "c0",
  ]);
  expect(keys(layOut(lanes, { ...plain, filter: "gpu STREAM" }).scrolled)).toEqual(["gGPU 0", "l2"]);
});

test("a collapsed lane fits all its rows into about one", () => {
  const { scrolled } = layOut(lanes, { ...plain, collapsed: new Set(["l0"]) });
  const block = scrolled[1];
  expect(block.type === "lane" && [block.height, block.rowHeight * 3]).toEqual([kCollapsedHeight, kCollapsedHeight]);
});

test("compact rows are lower", () => {
  expect(layOut(lanes, { ...plain, compact: true }).scrolled[1].height).toBe(3 * kCompactRowHeight);
});

test("rows are compact by default where there are many", () => {
  expect(compactByDefault(lanes)).toBe(false);
  expect(compactByDefault({ ...lanes, lanes: [lane(0, "g", "deep", 40)] })).toBe(true);
});

test("quiet threads are collapsed by default where there are many rows, devices never", () => {
  const busy = { ...lane(0, "p", "main", 30), slices: 1000 };
  const quiet = { ...lane(1, "p", "queue", 8), slices: 10 };
  const stream = { ...lane(2, "GPU 0", "stream", 8), slices: 10, kind: "stream" };
  expect([...collapsedByDefault({ ...lanes, lanes: [busy, quiet, stream] })]).toEqual(["l1"]);
  expect([...collapsedByDefault({ ...lanes, lanes: [{ ...busy, rows: 3 }, quiet] })]).toEqual([]);
});

test("a slice in a collapsed group is placed at its heading, one on a hidden lane nowhere", () => {
  const closed = layOut(lanes, { ...plain, collapsed: new Set(["gGPU 0"]) });
  expect(placeOf(closed, lanes.lanes[2], 1)?.y).toBe(closed.scrolled[3].y);
  const hidden = layOut(lanes, { ...plain, hidden: new Set(["l2", "c0"]) });
  expect(placeOf(hidden, lanes.lanes[2], 1)).toBeNull();
});

test("a height finds its block, and the space between blocks none", () => {
  const { scrolled } = layOut(lanes, plain);
  expect(blockAt(scrolled, scrolled[1].y + 1)?.key).toBe("l0");
  expect(blockAt(scrolled, scrolled[1].y + scrolled[1].height + 1)).toBeUndefined();
});
