import { expect, test } from "vitest";
import { contrast, kLabelColors, parseHex } from "../../parts/slice_colors";
import { changeColor, changeOf, layoutDifference } from "./flame_layout";

test("a frame is as wide as the average of both sides, and its children lie below it", () => {
  const { rows, toNs } = layoutDifference([
    [0, "train", 100, 140],
    [1, "gone", 60, 0],
    [1, "new", 0, 90],
    [2, "inside", 0, 40],
    [0, "eval", 20, 20],
  ]);
  expect(rows.map((row) => row.map((frame) => [frame.name, frame.startNs, frame.widthNs]))).toEqual([
    [
      ["train", 0, 120],
      ["eval", 120, 20],
    ],
    [
      ["gone", 0, 30],
      ["new", 30, 45],
    ],
    [["inside", 30, 20]],
  ]);
  expect(toNs).toBe(140);
  expect(layoutDifference([]).frameCount).toBe(0);
});

test("the change of a frame is between gone and new", () => {
  expect(changeOf({ beforeNs: 10, afterNs: 0 })).toBe(-1);
  expect(changeOf({ beforeNs: 0, afterNs: 10 })).toBe(1);
  expect(changeOf({ beforeNs: 10, afterNs: 10 })).toBe(0);
  expect(changeOf({ beforeNs: 0, afterNs: 0 })).toBe(0);
  expect(changeOf({ beforeNs: 10, afterNs: 20 })).toBe(0.5);
});

test.each(["light", "dark"] as const)("labels are readable on every color: %s", (theme) => {
  for (const change of [-1, -0.5, -0.1, 0, 0.1, 0.5, 1]) {
    expect(contrast(changeColor(change, theme), parseHex(kLabelColors[theme])), `${change}`).toBeGreaterThan(4.5);
  }
});
