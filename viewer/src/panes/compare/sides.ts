// Which traces are on which side of the comparison, as the link has it. Pure.

import type { TraceEntry, TraceList } from "../../data/answers";
import type { Sides } from "../../data/set_client";

// `0,1` in the link. Ids that the server does not have are left out.
function parseIds(text: string, traces: readonly TraceEntry[]): number[] {
  const known = new Set(traces.map((trace) => String(trace.id)));
  return [...new Set(text.split(","))].filter((id) => known.has(id)).map(Number);
}

// The link's sides where it names both, else those that the server was started with.
export function sidesOf(list: TraceList, before: string, after: string): Sides | null {
  const given = { before: parseIds(before, list.traces), after: parseIds(after, list.traces) };
  if (given.before.length > 0 && given.after.length > 0) return given;
  return list.compare ? { before: list.compare.before, after: list.compare.after } : null;
}

export type Place = "before" | "after" | "neither";

export function placeOf(sides: Sides, id: number): Place {
  if (sides.before.includes(id)) return "before";
  return sides.after.includes(id) ? "after" : "neither";
}

// The link's keys after a trace was moved; null where a side would be empty.
export function moved(sides: Sides, id: number, to: Place): Record<string, string> | null {
  const without = (ids: readonly number[]) => ids.filter((each) => each !== id);
  const before = [...without(sides.before), ...(to === "before" ? [id] : [])];
  const after = [...without(sides.after), ...(to === "after" ? [id] : [])];
  return before.length > 0 && after.length > 0 ? keysOf({ before, after }) : null;
}

export function keysOf(sides: Sides): Record<string, string> {
  return { "compare.before": sides.before.join(","), "compare.after": sides.after.join(",") };
}

// `train.lane`, or `train.lane and 3 more`.
export function sideName(ids: readonly number[], traces: readonly TraceEntry[]): string {
  const first = traces.find((trace) => trace.id === ids[0])?.name ?? "";
  return ids.length > 1 ? `${first} and ${ids.length - 1} more` : first;
}

// What still keeps the sides from being compared: those that load, and those that could not be read.
export function notReady(list: TraceList, sides: Sides): { loading: TraceEntry[]; failed: TraceEntry[] } {
  const wanted = list.traces.filter((trace) => placeOf(sides, trace.id) !== "neither");
  return {
    loading: wanted.filter((trace) => trace.state === "loading" || trace.state === "unloaded"),
    failed: wanted.filter((trace) => trace.state === "failed"),
  };
}
