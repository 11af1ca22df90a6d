// Column widths of a virtualized table: only some rows are in the document, so the browser cannot compute them.

import type { Cell, Column } from "../../data/answers";
import { cellText } from "../../text/cells";

const kPaddingPx = 20;
const kSortMarkPx = 15;
const kBarPx = 54;
const kSample = 300;
const kTextMinPx = 60;
const kTextMaxPx = 420;
const kTextShare = 0.42; // of the available width: numbers matter more than the end of a long name

// The width of a text on the screen; headers are bold.
export type Measure = (text: string, bold: boolean) => number;

// In px, one per column. Numbers get the width they need, text up to a limit that shrinks with the available width. Of many
// rows only a sample is measured: the numbers of a column are similar.
export function columnWidths(
  columns: readonly Column[],
  rows: readonly Cell[][],
  measure: Measure,
  roomPx = Infinity,
): number[] {
  const textMaxPx = Math.min(kTextMaxPx, Math.max(kTextMinPx, roomPx * kTextShare));
  const stride = Math.max(1, Math.floor(rows.length / kSample));
  return columns.map((column, at) => {
    let widest = 0;
    for (let i = 0; i < rows.length; i += stride) {
      const text = cellText(column, rows[i][at]);
      widest = Math.max(widest, measure(column.kind === "text" ? text.slice(0, 80) : text, false));
    }
    if (column.kind === "text") widest = Math.min(textMaxPx, Math.max(widest, kTextMinPx));
    const bar = column.kind === "percent" && !column.signed ? kBarPx : 0;
    return Math.ceil(Math.max(widest + bar, measure(column.label, true) + kSortMarkPx) + kPaddingPx);
  });
}

// With the page's font.
export function pageMeasure(): Measure {
  const context = document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  const size = getComputedStyle(document.body).fontSize;
  return (text, bold) => {
    if (!context) return text.length * 8;
    context.font = `${bold ? "600 " : ""}${size} ${family}`;
    return context.measureText(text).width;
  };
}

// The column that takes the remaining width: the widest text column, or none (-1).
export function stretchColumn(columns: readonly Column[], widths: readonly number[]): number {
  let best = -1;
  columns.forEach((column, at) => {
    if (column.kind === "text" && (best < 0 || widths[at] > widths[best])) best = at;
  });
  return best;
}

// The rows to keep in the document for a scroll position, with a few extra for fast scrolling.
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
