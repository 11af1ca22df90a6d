// A table's cell as text. Durations have three digits; points in time have microseconds, so that neighboring rows differ.

import type { Cell, Column } from "../data/answers";
import { formatByKind, formatTime } from "./format";
import { shortName } from "./names";

const kMoments = /^(?:start|end|time|at|peak|from|to|recorded_start|recorded_end)_ns$/;
const kMomentStepNs = 1000;

// `time_ns` labeled "Time" is a duration, with any other label a point in time.
function isMoment(column: Column): boolean {
  return column.kind === "duration" && kMoments.test(column.name) && column.label !== "Time";
}

// Numbers that identify something: no thousands separators.
const kIds = /^(?:(?:process_|thread_|graph_)?id|pid|tid|process|thread|stream|lane|device|step|correlation)$/;

export function isId(name: string): boolean {
  return kIds.test(name);
}

export function cellText(column: Column, cell: Cell): string {
  if (typeof cell === "number" && isMoment(column)) return formatTime(cell, kMomentStepNs);
  if (column.kind === "number" && typeof cell === "number" && isId(column.name)) return String(cell);
  const text = formatByKind(column.kind, cell);
  if (column.signed && typeof cell === "number" && cell > 0) return `+${text}`;
  return column.kind === "text" ? shortName(text) : text;
}
