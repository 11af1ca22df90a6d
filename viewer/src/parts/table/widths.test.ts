import { expect, test } from "vitest";
import { columnWidths, stretchColumn, visibleRows } from "./widths";

const columns = [
  { name: "name", label: "Name", kind: "text" as const },
  { name: "total_ns", label: "Total", kind: "duration" as const },
];

const measure = (text: string) => text.length * 8;

test("a column is as wide as its widest cell or its label", () => {
  const numbers = [{ name: "n", label: "Count", kind: "number" as const }];
  const [byLabel] = columnWidths(numbers, [[1]], measure);
  const [byCell] = columnWidths(numbers, [[1], [1_234_567_890]], measure);
  expect(byLabel).toBe("Count".length * 8 + 15 + 20);
  expect(byCell).toBe("1,234,567,890".length * 8 + 20);
});

test("long text gets a limit, short text a minimum, and the widest text takes what is left", () => {
  const [long] = columnWidths(columns, [["x".repeat(500), 1]], measure);
  const [longest] = columnWidths(columns, [["x".repeat(5000), 1]], measure);
  const [short] = columnWidths(columns, [["x", 1]], measure);
  expect(long).toBe(longest);
  expect(short).toBeGreaterThan(60);
  expect(stretchColumn(columns, [long, 80])).toBe(0);
  expect(stretchColumn(columns.slice(1), [80])).toBe(-1);
});

test("in a narrow table long names leave room for the numbers", () => {
  const rows = [["x".repeat(500), 1]];
  const [wide] = columnWidths(columns, rows, measure, 1500);
  const [narrow] = columnWidths(columns, rows, measure, 360);
  expect(wide).toBe(440);
  expect(narrow).toBeLessThan(180);
});

test("only the rows on the screen and a few around them are in the document", () => {
  expect(visibleRows(10_000, 26, 0, 520)).toEqual({ first: 0, end: 30 });
  expect(visibleRows(10_000, 26, 26 * 5000, 520)).toEqual({ first: 4990, end: 5030 });
  expect(visibleRows(10_000, 26, 26 * 9990, 520)).toEqual({ first: 9980, end: 10_000 });
  expect(visibleRows(0, 26, 0, 520)).toEqual({ first: 0, end: 0 });
});
