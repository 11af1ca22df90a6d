import { expect, test } from "vitest";
import type { HeatMap } from "../../data/job_answers";
import { cellAt, cellText, cellValue, heatColor, heatScale, heatShare } from "./heat";

const map: HeatMap = {
  value: "step",
  rankCount: 6,
  stepCount: 2,
  ranksARow: 3,
  stepsAColumn: 1,
  ranks: [0, 3],
  steps: [100, 101],
  cells: [10, 11, -1, 30],
};

test("one slow step does not decide the scale, and steps that are not recorded do not count", () => {
  const cells = Array.from({ length: 100 }, (_, i) => 1000 + i);
  const scale = heatScale([...cells, 1_000_000, -1]);
  expect(scale.high).toBeLessThan(1200);
  expect(heatShare(1_000_000, scale)).toBe(1);
  expect(heatShare(0, scale)).toBe(0);
});

test("equal values get the calm end of the scale, not full contrast", () => {
  const scale = heatScale([1000, 1000, 1000]);
  expect(heatShare(1000, scale)).toBe(0);
  expect(heatScale([])).toEqual({ low: 0, high: 1 });
});

test("colors go from one end to the other in both themes", () => {
  for (const theme of ["light", "dark"] as const) {
    expect(heatColor(0, theme)).not.toEqual(heatColor(1, theme));
    expect(heatColor(1, theme)).toHaveLength(3);
  }
});

test("the pointer finds its cell, and the cell says which ranks and steps it stands for", () => {
  expect(cellAt(map, 0.9, 0.9)).toEqual({ row: 1, column: 1 });
  expect(cellValue(map, { row: 1, column: 1 })).toBe(30);
  expect(cellText(map, { row: 1, column: 1 })).toBe("rank 3 and the 2 after it, step 101");
  expect(cellAt(map, 1.1, 0)).toBeNull();
  expect(cellAt(map, 0, -0.1)).toBeNull();
});
