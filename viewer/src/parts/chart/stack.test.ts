import { expect, test } from "vitest";
import { largestParts, stackSeries } from "./stack";

test("each series lies on those before it; unknown counts as nothing unless all are", () => {
  expect(stackSeries([[1, null, null], [2, 5, null]])).toEqual([
    [1, null, null],
    [3, 5, null],
  ]);
});

test("small parts become the rest, and every row still adds up", () => {
  const parts = largestParts(["a", "tiny", "b", "none"], [[60, 1, 39, 0], [50, 0, 50, 0]], { most: 6, least: 0.02 });
  expect(parts.names).toEqual(["a", "b", "rest"]);
  expect(parts.rows).toEqual([[60, 39, 1], [50, 50, 0]]);
});

test("at most so many parts have a name", () => {
  expect(largestParts(["a", "b", "c"], [[1, 3, 2]], { most: 2, least: 0 })).toEqual({ names: ["b", "c", "rest"], rows: [[3, 2, 1]] });
});
