// Where in the timeline a row of a described table links to.

import type { Cell, Column, OfSteps } from "../../data/answers";
import type { TimelinePlace } from "../../page/navigation";

// Columns that may hold the name of a slice, in order of preference.
export const kNames = ["name", "op", "call", "asked_by"];

export type PlaceOf = (row: Cell[]) => TimelinePlace | null;

// The most exact place that the columns give, or null when they give none. Where a table also has recorded times (a critical
// path without profiling overhead has its own), those are the trace's and win.
export function placesOf(columns: readonly Column[]): PlaceOf | null {
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const finders: PlaceOf[] = [];
  const number = (row: Cell[], index: number) => (typeof row[index] === "number" ? row[index] : undefined);

  const ref = at("ref");
  if (ref >= 0) finders.push((row) => (typeof row[ref] === "string" ? { ref: row[ref] } : null));

  const recordedStart = at("recorded_start_ns");
  const recordedEnd = at("recorded_end_ns");
  if (recordedStart >= 0 && recordedEnd >= 0) {
    finders.push((row) => {
      const start = number(row, recordedStart);
      const end = number(row, recordedEnd);
      return start === undefined || end === undefined ? null : { startNs: start, durationNs: end - start };
    });
  }

  const start = at("start_ns") >= 0 ? at("start_ns") : at("time_ns");
  const duration = at("duration_ns");
  const isSum = columns[at("time_ns")]?.label === "Time"; // a duration, not a point in time
  const isPlace = at("start_ns") >= 0 ? duration >= 0 : at("time_ns") >= 0 && duration < 0 && !isSum;
  if (isPlace) {
    finders.push((row) => {
      const startNs = number(row, start);
      return startNs === undefined ? null : { startNs, durationNs: duration < 0 ? 0 : (number(row, duration) ?? 0) };
    });
  }

  const step = at("step");
  if (step >= 0) {
    finders.push((row) => {
      const found = number(row, step);
      return found === undefined ? null : { step: found };
    });
  }

  const name = at(kNames.find((each) => at(each) >= 0) ?? "name");
  if (name >= 0) {
    finders.push((row) => (typeof row[name] === "string" && row[name] !== "" ? { name: row[name] } : null));
  }

  if (finders.length === 0) return null;
  return (row) => {
    for (const find of finders) {
      const place = find(row);
      if (place) return place;
    }
    return null;
  };
}

// The same places, in the timeline of the light steps.
export function placesInSteps(find: PlaceOf | null, steps: OfSteps): PlaceOf | null {
  if (!find || !steps) return find;
  return (row) => {
    const place = find(row);
    return place && { ...place, steps };
  };
}
