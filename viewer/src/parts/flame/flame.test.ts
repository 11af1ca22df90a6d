import { expect, test } from "vitest";
import type { FlameNode } from "../../data/answers";
import { childrenOf, frameAt, frameKind, frameLabel, layoutFlame, parentOf, searchFlame, siblingOf, visibleBoxes, zoomView } from "./flame";

// main 0..100: load 0..30 (read 10..20), train 40..100 (mm 40..70, add 70..100)
const nodes: FlameNode[] = [
  [0, 0, 100, "main", 10, 1],
  [1, 40, 60, "train", 0, 1],
  [1, 0, 30, "load", 20, 1],
  [2, 10, 10, "read", 10, 1],
  [2, 40, 30, "mm", 30, 2],
  [2, 70, 30, "add", 30, 2],
];
const layout = layoutFlame(nodes);

test("frames are in rows by depth, each sorted by start", () => {
  expect(layout.rows.map((row) => row.map((frame) => frame.name))).toEqual([["main"], ["load", "train"], ["read", "mm", "add"]]);
  expect([layout.fromNs, layout.toNs]).toEqual([0, 100]);
});

test("the frame under the pointer is the one that covers the time; between frames there is none", () => {
  expect(frameAt(layout, 1, 29)?.name).toBe("load");
  expect(frameAt(layout, 1, 30)).toBeNull();
  expect(frameAt(layout, 1, 40)?.name).toBe("train");
  expect(frameAt(layout, 7, 40)).toBeNull();
});

test("parent, children and siblings of a frame are found", () => {
  const train = layout.rows[1][1];
  expect(parentOf(layout, train)?.name).toBe("main");
  expect(childrenOf(layout, train).map((frame) => frame.name)).toEqual(["mm", "add"]);
  expect(siblingOf(layout, train, -1)?.name).toBe("load");
  expect(siblingOf(layout, train, 1)).toBeNull();
});

test("frames are clipped at the edges of the view", () => {
  expect(visibleBoxes(layout.rows[1], { fromNs: 20, toNs: 60 }, 400).map((box) => [box.frame.name, box.left, box.width])).toEqual([
    ["load", 0, 100],
    ["train", 200, 200],
  ]);
});

test("of frames narrower than a pixel one per pixel is drawn", () => {
  const narrow = layoutFlame(Array.from({ length: 1000 }, (_, i): FlameNode => [0, i, 1, `f${i}`, 1, 1]));
  const boxes = visibleBoxes(narrow.rows[0], { fromNs: 0, toNs: 1000 }, 10);
  expect(boxes).toHaveLength(10);
  expect(boxes.every((box) => box.width === 1)).toBe(true);
});

test("zooming keeps the time under the pointer and stays inside the layout", () => {
  expect(zoomView(layout, { fromNs: 0, toNs: 100 }, 50, 0.5)).toEqual({ fromNs: 25, toNs: 75 });
  expect(zoomView(layout, { fromNs: 80, toNs: 100 }, 100, 2)).toEqual({ fromNs: 60, toNs: 100 });
  expect(zoomView(layout, { fromNs: 25, toNs: 75 }, 50, 10)).toEqual({ fromNs: 0, toNs: 100 });
});

test("a match inside a match is not counted twice", () => {
  expect(searchFlame(layout, "A")).toEqual({ frames: 5, totalNs: 100 });
  expect(searchFlame(layout, "ad")).toEqual({ frames: 3, totalNs: 60 });
  expect(searchFlame(layout, "")).toEqual({ frames: 0, totalNs: 0 });
});

test("frames get the kinds that the timeline colors by", () => {
  expect(frameKind("train.py(12): step")).toBe(2);
  expect(frameKind("<built-in method item of Tensor object at 0x7f>")).toBe(2);
  expect(frameKind("nn.Module: GPT_0")).toBe(1);
  expect(frameKind("cudaLaunchKernel")).toBe(3);
  expect(frameKind("cuLaunchKernelEx")).toBe(3);
  expect(frameKind("aten::mm")).toBe(0);
  expect(frameKind("(7 more)")).toBe(7);
});

test("a label that does not fit loses its file before its end", () => {
  expect(frameLabel("train.py(12): step", 40)).toBe("train.py(12): step");
  expect(frameLabel("train.py(12): step", 10)).toBe("step");
  expect(frameLabel("train.py(12): a_long_name", 6)).toBe("a_lon…");
  expect(frameLabel("aten::mm", 1)).toBe("a…");
});

test("a flame without frames has a window that is not empty", () => {
  expect(layoutFlame([])).toEqual({ rows: [], fromNs: 0, toNs: 1, frameCount: 0 });
});
