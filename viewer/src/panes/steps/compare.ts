// Two steps side by side: tables of what happened in each, joined by name. Pure.

import type { Cell, Column, Table } from "../../data/answers";

// For each key, `value` in both tables and the difference. A key missing from one table counts as 0 there. The largest absolute
// difference comes first.
export function compareTables(
  before: Table,
  after: Table,
  options: { key: readonly string[]; value: string; labels: [string, string] },
): Table {
  const left = sums(before, options.key, options.value);
  const right = sums(after, options.key, options.value);
  const keyColumns = options.key.map((name) => column(before, name) ?? column(after, name)!);
  const kind = (column(before, options.value) ?? column(after, options.value))?.kind ?? "number";
  const rows: Cell[][] = [];
  for (const id of new Set([...left.keys(), ...right.keys()])) {
    const key = (left.get(id) ?? right.get(id))!.key;
    const a = left.get(id)?.sum ?? 0;
    const b = right.get(id)?.sum ?? 0;
    rows.push([...key, a, b, b - a, a > 0 ? (100 * (b - a)) / a : null]);
  }
  rows.sort((x, y) => Math.abs(Number(y[keyColumns.length + 2])) - Math.abs(Number(x[keyColumns.length + 2])));
  const columns: Column[] = [
    ...keyColumns,
    { name: "first", label: options.labels[0], kind },
    { name: "second", label: options.labels[1], kind },
    { name: "difference", label: "Difference", kind, signed: true },
    { name: "change_percent", label: "Change", kind: "percent", signed: true },
  ];
  return { name: "difference", title: "", rowCount: rows.length, columns, rows, notes: [] };
}

function column(table: Table, name: string): Column | undefined {
  return table.columns.find((each) => each.name === name);
}

function sums(table: Table, key: readonly string[], value: string): Map<string, { key: Cell[]; sum: number }> {
  const keyAt = key.map((name) => table.columns.findIndex((each) => each.name === name));
  const valueAt = table.columns.findIndex((each) => each.name === value);
  const out = new Map<string, { key: Cell[]; sum: number }>();
  if (valueAt < 0) return out;
  for (const row of table.rows) {
    const cells = keyAt.map((at) => (at < 0 ? null : row[at]));
    const id = JSON.stringify(cells);
    const known = out.get(id);
    const amount = Number(row[valueAt] ?? 0);
    if (known) known.sum += amount;
    else out.set(id, { key: cells, sum: amount });
  }
  return out;
}

// The steps to compare by default: the fastest and the slowest, without warm-up steps.
export function defaultPair(rows: readonly { step: number; durationNs: number; warmup: boolean }[]): [number, number] | null {
  const judged = rows.filter((row) => !row.warmup);
  const from = judged.length >= 2 ? judged : rows;
  if (from.length < 2) return null;
  const sorted = [...from].sort((a, b) => a.durationNs - b.durationNs);
  return [sorted[0].step, sorted[sorted.length - 1].step];
}
