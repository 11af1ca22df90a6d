import { expect, test } from "vitest";
import type { Cell, Table } from "../../data/answers";
import { compareTables, defaultPair } from "./compare";

const table = (rows: Cell[][]): Table => ({
  name: "names",
  title: "",
  rowCount: rows.length,
  columns: [
    { name: "name", label: "Name", kind: "text" },
    { name: "self_ns", label: "Self", kind: "duration" },
  ],
  rows,
  notes: [],
});
const options = { key: ["name"], value: "self_ns", labels: ["step 1", "step 2"] as [string, string] };

test("the largest absolute difference comes first, and what one step lacks is 0 there", () => {
  const found = compareTables(table([["mm", 100], ["add", 50], ["gone", 20]]), table([["mm", 90], ["add", 150], ["new", 15]]), options);
  expect(found.rows).toEqual([
    ["add", 50, 150, 100, 200],
    ["gone", 20, 0, -20, -100],
    ["new", 0, 15, 15, null],
    ["mm", 100, 90, -10, -10],
  ]);
  expect(found.columns.map((column) => column.label)).toEqual(["Name", "step 1", "step 2", "Difference", "Change"]);
});

test("rows with the same name are added up", () => {
  expect(compareTables(table([["mm", 1], ["mm", 2]]), table([["mm", 3]]), options).rows).toEqual([["mm", 3, 3, 0, 0]]);
});

test("by default the fastest and the slowest step are compared, without warm-up", () => {
  const step = (number: number, durationNs: number, warmup = false) => ({ step: number, durationNs, warmup });
  expect(defaultPair([step(1, 900, true), step(2, 30), step(3, 50), step(4, 20)])).toEqual([4, 3]);
  expect(defaultPair([step(1, 900, true), step(2, 30)])).toEqual([2, 1]);
  expect(defaultPair([step(1, 1)])).toBeNull();
});
