import { expect, test } from "vitest";
import { largestParts, stackSeries } from "./stack";

test("each series is added to those before it; null counts as 0 unless all are null", () => {
  expect(stackSeries([[1, null, null], [2, 5, null]])).toEqual([
    [1, null, null],
    [3, 5, null],
  ]);
});

test("small parts become the rest, and every row still adds up", () => {
  const parts = largestParts(["a", "tiny", "b", "none"], [[60, 1, 39, 0], [50, 0, 50, 0]], { maxParts: 6, minShare: 0.02 });
  expect(parts.names).toEqual(["a", "b", "rest"]);
  expect(parts.rows).toEqual([[60, 39, 1], [50, 50, 0]]);
});

test("no more than maxParts parts are kept", () => {
  expect(largestParts(["a", "b", "c"], [[1, 3, 2]], { maxParts: 2, minShare: 0 })).toEqual({ names: ["b", "c", "rest"], rows: [[3, 2, 1]] });
});
