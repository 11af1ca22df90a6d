// A table's cell as text. Durations have three digits; moments have microseconds, or neighbours would look alike.

import type { Cell, Column } from "../../data/types";
import { formatByKind, formatTime } from "../../format";
import { shortName } from "../names";

const kMoments = /^(?:start|end|time|at|peak|from|to|recorded_start|recorded_end)_ns$/;
const kMomentStepNs = 1000;

export function cellText(column: Column, cell: Cell): string {
  if (column.kind === "duration" && typeof cell === "number" && kMoments.test(column.name)) {
    return formatTime(cell, kMomentStepNs);
  }
  const text = formatByKind(column.kind, cell);
  return column.kind === "text" ? shortName(text) : text;
}
