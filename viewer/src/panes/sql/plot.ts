// Two columns of a result as points to plot. Pure.

import type { Table } from "../../data/answers";

export function numericColumns(table: Table): string[] {
  return table.columns
    .filter((_, at) => table.rows.some((row) => typeof row[at] === "number"))
    .map((column) => column.name);
}

// Sorted by x, as charts need it. Rows where either value is unknown are left out. With x "", x is the row's index.
export function plotData(table: Table, x: string, y: string): { x: number[]; y: number[] } {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const [xAt, yAt] = [at(x), at(y)];
  const points = table.rows.flatMap((row, i): [number, number][] => {
    const px = x === "" ? i : row[xAt];
    const py = row[yAt];
    return typeof px === "number" && typeof py === "number" ? [[px, py]] : [];
  });
  points.sort((a, b) => a[0] - b[0]);
  return { x: points.map((point) => point[0]), y: points.map((point) => point[1]) };
}
