import { expect, test } from "vitest";
import type { Cell, Report, Table } from "../../data/answers";
import { changedWork, withSigns } from "./tables";
import { verdictOf } from "./verdict";

const table = (rows: Cell[][]): Table => ({
  name: "work",
  title: "",
  rowCount: 100,
  columns: [
    { name: "change", label: "Change", kind: "text" },
    { name: "before_ns", label: "Time before", kind: "duration" },
    { name: "after_ns", label: "after", kind: "duration" },
    { name: "by_speed_ns", label: "By speed", kind: "duration" },
  ],
  rows,
  notes: [],
});

test("differences have a sign, amounts have none", () => {
  const report: Report = { recordedSteps: undefined, title: "", facts: [], tables: [table([])], notes: [] };
  expect(withSigns(report).tables[0].columns.map((column) => column.signed ?? false)).toEqual([false, false, false, true]);
  expect(report.tables[0].columns[3].signed).toBeUndefined();
});

test("work that is the same is left out, unless its time changed by a thousandth of the step", () => {
  const shown = changedWork(
    table([
      ["same", 500, 501, 1],
      ["same", 500, 400, -100],
      ["new", 0, 1, 0],
    ]),
    10_000,
  );
  expect(shown.rows.map((row) => row[2])).toEqual([400, 1]);
  expect(shown.rowCount).toBe(99);
  expect(changedWork(table([["same", 500, 500, 0]]), 10_000).rows).toHaveLength(1);
});

test("the verdict is the outcome in a word, and never certain where the outcome is not", () => {
  expect(verdictOf("more", 1.2)).toEqual({ word: "Slower", tone: "slower" });
  expect(verdictOf("less", 0.8)).toEqual({ word: "Faster", tone: "faster" });
  expect(verdictOf("same", 1.01)).toEqual({ word: "Same", tone: "same" });
  expect(verdictOf("inconclusive", 3.3)).toEqual({ word: "Not certain", tone: "open" });
  expect(verdictOf("inconclusive", 1)).toEqual({ word: "No difference seen", tone: "open" });
  expect(verdictOf(null, null).tone).toBe("open");
});
