import { expect, test } from "vitest";
import type { Table } from "../../data/answers";
import { numericColumns, plotData } from "./plot";

const table: Table = {
  name: "rows",
  title: "",
  rowCount: 3,
  columns: [
    { name: "name", label: "name", kind: "text" },
    { name: "x", label: "x", kind: "number" },
    { name: "y", label: "y", kind: "number" },
  ],
  rows: [["a", 3, 30], ["b", 1, 10], ["c", 2, null]],
  notes: [],
};

test("only columns that hold numbers can be plotted", () => {
  expect(numericColumns(table)).toEqual(["x", "y"]);
});

test("points are sorted by x, and rows with an unknown value are left out", () => {
  expect(plotData(table, "x", "y")).toEqual({ x: [1, 3], y: [10, 30] });
  expect(plotData(table, "", "x")).toEqual({ x: [0, 1, 2], y: [3, 1, 2] });
});
