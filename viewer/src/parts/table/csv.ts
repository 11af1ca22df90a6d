// A table as CSV for spreadsheets: quoted as in RFC 4180, and without cells that a spreadsheet would run as a formula.

import type { Cell, Column } from "../../data/answers";

// Names in a trace are hostile: a kernel may be called `=HYPERLINK(...)`. A leading apostrophe makes it text.
export function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell !== "string") return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// Headers are the names that docs, JSON and SQL use; numbers stay plain.
export function toCsv(columns: readonly Column[], rows: readonly Cell[][]): string {
  const lines = [columns.map((column) => csvCell(column.name)), ...rows.map((row) => row.map(csvCell))];
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}
