import { expect, test } from "vitest";
import type { Cell, Table } from "../../data/answers";
import { compareTables, usualPair } from "./compare";

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

test("what differs most is first, either way, and what one step lacks is 0 there", () => {
  const found = compareTables(table([["mm", 100], ["add", 50], ["gone", 20]]), table([["mm", 90], ["add", 150], ["new", 15]]), options);
  expect(found.rows).toEqual([
    ["add", 50, 150, 100, 200],
    ["gone", 20, 0, -20, -100],
    ["new", 0, 15, 15, null],
    ["mm", 100, 90, -10, -10],
  ]);
  expect(found.columns.map((column) => column.label)).toEqual(["Name", "step 1", "step 2", "Difference", "Change"]);
});

test("rows of one name are added up", () => {
  expect(compareTables(table([["mm", 1], ["mm", 2]]), table([["mm", 3]]), options).rows).toEqual([["mm", 3, 3, 0, 0]]);
});

test("at first the fastest and the slowest step are compared, warm-up left out", () => {
  const step = (number: number, durationNs: number, warmup = false) => ({ step: number, durationNs, warmup });
  expect(usualPair([step(1, 900, true), step(2, 30), step(3, 50), step(4, 20)])).toEqual([4, 3]);
  expect(usualPair([step(1, 900, true), step(2, 30)])).toEqual([2, 1]);
  expect(usualPair([step(1, 1)])).toBeNull();
});
