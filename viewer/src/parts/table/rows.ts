// Sorting and filtering the rows of a described table. Pure: no DOM.

import type { Cell, Column, Table } from "../../data/answers";

export interface Sort {
  column: string;
  descending: boolean;
}

// As written in the link: `total_ns` or, descending, `-total_ns`.
export function parseSort(text: string): Sort | null {
  if (text === "" || text === "-") return null;
  return text.startsWith("-") ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

export function formatSort(sort: Sort | null): string {
  return sort ? `${sort.descending ? "-" : ""}${sort.column}` : "";
}

// The sort order after a click on a header: numbers start with the largest, text with A; another click reverses it.
export function nextSort(current: Sort | null, column: Column): Sort {
  if (current?.column === column.name) return { column: column.name, descending: !current.descending };
  return { column: column.name, descending: column.kind !== "text" };
}

function compareKnown(a: NonNullable<Cell>, b: NonNullable<Cell>): number {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "string" || typeof b === "string") return typeof a === "string" ? 1 : -1;
  return Number(a) - Number(b);
}

// A sorted copy. Equal rows keep their order; null comes last either way.
export function sortRows(table: Pick<Table, "columns">, rows: readonly Cell[][], sort: Sort | null): readonly Cell[][] {
  const at = sort ? table.columns.findIndex((column) => column.name === sort.column) : -1;
  if (!sort || at < 0) return rows;
  const sign = sort.descending ? -1 : 1;
  return [...rows].sort((left, right) => {
    const a = left[at];
    const b = right[at];
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return sign * compareKnown(a, b);
  });
}

// Rows whose text cells contain every word, ignoring case. Numbers are filtered by comparison: `calls>100`.
export function filterRows(table: Pick<Table, "columns">, rows: readonly Cell[][], filter: string): readonly Cell[][] {
  const words = filter.trim().toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return rows;
  const tests = words.map((word) => comparison(table.columns, word) ?? contains(table.columns, word));
  return rows.filter((row) => tests.every((test) => test(row)));
}

type Test = (row: Cell[]) => boolean;

function contains(columns: readonly Column[], word: string): Test {
  const texts = columns.flatMap((column, at) => (column.kind === "text" ? [at] : []));
  return (row) => texts.some((at) => String(row[at] ?? "").toLowerCase().includes(word));
}

const kUnits: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 };

// `calls>100`, `total<1ms`: a column by its name, its label or the end of its label ("# of Calls"), a number, a unit.
function comparison(columns: readonly Column[], word: string): Test | null {
  const found = /^([a-z_]+)([<>])(-?\d+(?:\.\d+)?)([a-z]*)$/.exec(word);
  if (!found) return null;
  const [, name, sign, number, unit] = found;
  const fits = (test: (column: Column, label: string) => boolean) =>
    columns.findIndex((column) => column.kind !== "text" && test(column, column.label.toLowerCase().replace(/[^a-z]+/g, "_")));
  const exact = fits((column, label) => column.name === name || label === name);
  const at = exact >= 0 ? exact : fits((_, label) => label.endsWith(`_${name}`));
  const factor = unit === "" ? 1 : kUnits[unit];
  if (at < 0 || factor === undefined) return null;
  const limit = Number(number) * factor;
  return (row) => {
    const value = row[at];
    return typeof value === "number" && (sign === ">" ? value > limit : value < limit);
  };
}

// Columns to hide by default: no value in any row, or 0 bytes in all of them.
export function emptyColumns(table: Pick<Table, "columns" | "rows">): Set<string> {
  const empty = new Set<string>();
  table.columns.forEach((column, at) => {
    const isEmpty = (cell: Cell) => cell === null || (column.kind === "bytes" && cell === 0);
    if (table.rows.every((row) => isEmpty(row[at]))) empty.add(column.name);
  });
  return empty;
}
