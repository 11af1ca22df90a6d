import { expect, test } from "vitest";
import type { Cell, Column } from "../../data/answers";
import { emptyColumns, filterRows, formatSort, nextSort, parseSort, sortRows } from "./rows";

const columns: Column[] = [
  { name: "name", label: "Name", kind: "text" },
  { name: "calls", label: "Calls", kind: "number" },
  { name: "total_ns", label: "Total", kind: "duration" },
];
const rows: Cell[][] = [
  ["aten::mm", 3, 2_000_000],
  ["aten::add", 12, null],
  ["Memcpy HtoD", 3, 500],
  ["aten::addmm", 1, 900_000],
];
const table = { columns };
const names = (found: readonly Cell[][]) => found.map((row) => row[0]);

test("rows are sorted by number, equal ones keep their order, unknown ones come last either way", () => {
  expect(names(sortRows(table, rows, parseSort("-total_ns")))).toEqual(["aten::mm", "aten::addmm", "Memcpy HtoD", "aten::add"]);
  expect(names(sortRows(table, rows, parseSort("total_ns")))).toEqual(["Memcpy HtoD", "aten::addmm", "aten::mm", "aten::add"]);
  expect(names(sortRows(table, rows, parseSort("-calls")))).toEqual(["aten::add", "aten::mm", "Memcpy HtoD", "aten::addmm"]);
});

test("sorting leaves the given rows alone, and an unknown column changes nothing", () => {
  const given = rows.map((row) => [...row]);
  sortRows(table, given, parseSort("name"));
  expect(given).toEqual(rows);
  expect(sortRows(table, rows, parseSort("-gone"))).toBe(rows);
});

test("a click on a header sorts by the largest number or from A, another click reverses it", () => {
  expect(formatSort(nextSort(null, columns[2]))).toBe("-total_ns");
  expect(formatSort(nextSort(parseSort("-total_ns"), columns[2]))).toBe("total_ns");
  expect(formatSort(nextSort(parseSort("-total_ns"), columns[0]))).toBe("name");
});

test("every word of a filter must occur, ignoring case", () => {
  expect(names(filterRows(table, rows, "ADD"))).toEqual(["aten::add", "aten::addmm"]);
  expect(names(filterRows(table, rows, "add mm"))).toEqual(["aten::addmm"]);
  expect(filterRows(table, rows, "  ")).toBe(rows);
});

test("a filter compares numbers by a column's name or label, with units", () => {
  expect(names(filterRows(table, rows, "calls>2"))).toEqual(["aten::mm", "aten::add", "Memcpy HtoD"]);
  expect(names(filterRows(table, rows, "total<1ms"))).toEqual(["Memcpy HtoD", "aten::addmm"]);
  expect(names(filterRows(table, rows, "total_ns>0.5ms aten"))).toEqual(["aten::mm", "aten::addmm"]);
});

test("the end of a label is enough to name a column", () => {
  const torch = [columns[0], { name: "count", label: "# of Calls", kind: "number" as const }];
  expect(names(filterRows({ columns: torch }, rows, "calls>3"))).toEqual(["aten::add"]);
});

test("a comparison with an unknown column is plain text", () => {
  const kernels: Cell[][] = [["foo<a>3", 1, 1]];
  expect(names(filterRows(table, kernels, "a>3"))).toEqual(["foo<a>3"]);
});

test("columns without a value in any row are empty, and so are byte columns of zeros", () => {
  const bytes: Column[] = [{ name: "kept_bytes", label: "Kept", kind: "bytes" }, { name: "calls", label: "Calls", kind: "number" }];
  expect([...emptyColumns({ columns: bytes, rows: [[0, 0], [null, 0]] })]).toEqual(["kept_bytes"]);
  expect([...emptyColumns({ columns, rows: [["a", null, 1], ["b", null, null]] })]).toEqual(["calls"]);
});
