import { expect, test } from "vitest";
import type { Table } from "../../data/answers";
import { type Part, partsOf, waterfall, withoutSmall } from "./waterfall";

const part = (name: string, beforeNs: number, afterNs: number): Part => ({ name, beforeNs, afterNs, meaning: name });

test("the bars lead from the step before to the step after without a gap", () => {
  const { bars, beforeNs, afterNs } = waterfall([part("matmul", 600, 800), part("input", 300, 250), part("copies", 100, 100)]);
  expect([beforeNs, afterNs]).toEqual([1000, 1150]);
  expect(bars.map((bar) => [bar.fromNs, bar.toNs])).toEqual([
    [1000, 1200],
    [1200, 1150],
    [1150, 1150],
  ]);
});

test("small parts become one, and the sums stay", () => {
  const parts = [part("matmul", 600, 800), part("a", 100, 101), part("b", 100, 99), part("c", 7, 7)];
  const shown = withoutSmall(parts);
  expect(shown.map((each) => each.name)).toEqual(["matmul", "3 others"]);
  expect(waterfall(shown).beforeNs).toBe(waterfall(parts).beforeNs);
  expect(waterfall(shown).afterNs).toBe(waterfall(parts).afterNs);
  expect(shown[1].meaning).toBe("a, b, c");
  expect(withoutSmall([part("matmul", 1, 2), part("a", 5, 5)])).toHaveLength(2);
});

test("the axis starts at 0 unless the change would be too small to see", () => {
  expect(waterfall([part("a", 0, 1000)]).axis).toEqual([0, 1000]);
  const [from, to] = waterfall([part("a", 1000, 1010)]).axis;
  expect(from).toBeGreaterThan(990);
  expect(to).toBe(1010);
});

test("equal and empty steps have an axis too", () => {
  expect(waterfall([part("a", 1000, 1000)]).axis).toEqual([995, 1000]);
  expect(waterfall([]).axis).toEqual([0, 1]);
});

test("the parts of a report are those above its sum", () => {
  const table = {
    columns: ["part", "before_ns", "after_ns", "change_ns", "meaning"].map((name) => ({ name, label: name, kind: "text" })),
    rows: [
      ["matmul kernels", 5, 7, 2, "tensor cores"],
      ["all", 5, 7, 2, "the step"],
    ],
  } as unknown as Table;
  expect(partsOf(table)).toEqual([{ name: "matmul kernels", beforeNs: 5, afterNs: 7, meaning: "tensor cores" }]);
});
