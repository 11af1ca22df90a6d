// Widths of a virtualised table's columns: only a part of the rows is in the document, so the browser cannot find them.

import type { Cell, Column } from "../../data/types";
import { formatByKind } from "../../format";

const kCharPx = 7.2;
const kPaddingPx = 18;
const kSortMarkPx = 14;
const kBarPx = 52;
const kSample = 300;
const kTextMin = 8;
const kTextMax = 60;

// In px, one per column. Numbers get what they need; text between 8 and 60 characters.
export function columnWidths(columns: readonly Column[], rows: readonly Cell[][]): number[] {
  const stride = Math.max(1, Math.floor(rows.length / kSample));
  return columns.map((column, at) => {
    let longest = 0;
    for (let i = 0; i < rows.length; i += stride) {
      longest = Math.max(longest, formatByKind(column.kind, rows[i][at]).length);
    }
    if (column.kind === "text") longest = Math.min(kTextMax, Math.max(longest, kTextMin));
    const bar = column.kind === "percent" ? kBarPx : 0;
    const content = longest * kCharPx + bar;
    const header = column.label.length * kCharPx + kSortMarkPx;
    return Math.ceil(Math.max(content, header) + kPaddingPx);
  });
}

// The column that takes what is left: the widest text, or none.
export function stretchColumn(columns: readonly Column[], widths: readonly number[]): number {
  let best = -1;
  columns.forEach((column, at) => {
    if (column.kind === "text" && (best < 0 || widths[at] > widths[best])) best = at;
  });
  return best;
}

// Which rows are in the document when `scrollTop` of a box of `height` is shown; some more, for fast scrolling.
export function visibleRows(
  rowCount: number,
  rowPx: number,
  scrollTop: number,
  height: number,
): { first: number; end: number } {
  const extra = 10;
  const first = Math.max(0, Math.min(rowCount, Math.floor(scrollTop / rowPx) - extra));
  const end = Math.min(rowCount, Math.ceil((scrollTop + height) / rowPx) + extra);
  return { first, end: Math.max(first, end) };
}
