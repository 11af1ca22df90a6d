// The table of runs as points to plot: each figure against what the runs differ by. Pure.

import type { Column, Table } from "../../data/answers";

// The figures that people choose a setting by, in the order of their charts.
const kFigures = ["samples_per_second", "tokens_per_second", "step_ns", "peak_bytes", "mfu_percent", "energy_joules"];

export interface Figure {
  column: Column;
  values: (number | null)[]; // of the runs in their order
}

export interface RunsPlot {
  names: string[];
  x: number[]; // ascending
  numeric: boolean; // x is the variable's value; otherwise the runs stand side by side in their order
  figures: Figure[]; // only those that some run has
}

// `over`: "name", or a numeric column such as `samples`. A name that is a number in every row (batch sizes) counts as one.
export function runsPlot(table: Table, over: string): RunsPlot {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const number = (cell: unknown) => (cell === null || cell === "" ? NaN : Number(cell));
  const overAt = at(over) < 0 ? at("name") : at(over);
  const values = table.rows.map((row) => number(row[overAt]));
  const numeric = values.length > 0 && values.every(Number.isFinite) && new Set(values).size === values.length;
  const order = table.rows.map((_, i) => i);
  if (numeric) order.sort((a, b) => values[a] - values[b]);
  const figures = kFigures.flatMap((name): Figure[] => {
    const index = at(name);
    if (index < 0) return [];
    const cells = order.map((i) => table.rows[i][index]);
    const known = cells.map((cell) => (typeof cell === "number" ? cell : null));
    return known.some((value) => value !== null) ? [{ column: table.columns[index], values: known }] : [];
  });
  return {
    names: order.map((i) => String(table.rows[i][at("name")])),
    x: order.map((i, place) => (numeric ? values[i] : place)),
    numeric,
    figures,
  };
}

// A name for an axis that has room for so many characters: without its file's ending, then without its middle. Where not even a
// few fit, its row.
export function axisName(names: readonly string[], at: number, room: number): string {
  const name = (names[at] ?? "").replace(/\.(?:lane|json(?:\.gz|\.zst)?)$/, "");
  if (name.length <= room) return name;
  if (room < 5) return at < names.length ? String(at + 1) : "";
  const tail = Math.floor((room - 1) / 2);
  return `${name.slice(0, room - 1 - tail)}…${name.slice(-tail)}`;
}
