// The tables of a comparison as people read them: differences with their sign, and without what did not change. Pure.

import type { Report, Table } from "../../data/answers";

const kDifferences = /^(?:change_(?:ns|bytes|percent)|by_calls_ns|by_speed_ns|step_change_ns|share_percent)$/;

// Differences are shown with their sign, and without a bar.
export function withSigns(report: Report): Report {
  const tables = report.tables.map((table) => ({
    ...table,
    columns: table.columns.map((column) => (kDifferences.test(column.name) ? { ...column, signed: true } : column)),
  }));
  return { ...report, tables };
}

// Without the work that is the same, but for less than a thousandth of the step; all of it where nothing changed.
export function changedWork(table: Table, stepNs: number): Table {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const [change, before, after] = [at("change"), at("before_ns"), at("after_ns")];
  const rows = table.rows.filter(
    (row) => row[change] !== "same" || Math.abs(Number(row[after]) - Number(row[before])) >= stepNs / 1000,
  );
  if (rows.length === 0) return table;
  return { ...table, rows, rowCount: table.rowCount - (table.rows.length - rows.length) };
}
