// Columns of differences, which are shown with their sign and without a bar. Pure.

import type { Report } from "../../data/answers";

const kDifferences = /^(?:change_(?:ns|bytes|percent)|by_calls_ns|by_speed_ns|step_change_ns|share_percent)$/;

export function withSigns(report: Report): Report {
  const tables = report.tables.map((table) => ({
    ...table,
    columns: table.columns.map((column) => (kDifferences.test(column.name) ? { ...column, signed: true } : column)),
  }));
  return { ...report, tables };
}
