import { expect, test } from "vitest";
import type { Column } from "../../data/answers";
import { placesInSteps, placesOf } from "./places";

const columns = (...names: string[]): Column[] => names.map((name) => ({ name, label: name, kind: "number" }));

test("a start with a duration is a place", () => {
  expect(placesOf(columns("start_ns", "duration_ns"))!([10, 5])).toEqual({ startNs: 10, durationNs: 5 });
});

test("a ref wins over a time, a time over a step, a step over a name", () => {
  const find = placesOf(columns("name", "step", "start_ns", "duration_ns", "ref"))!;
  expect(find(["mm", 3, 10, 5, "h7"])).toEqual({ ref: "h7" });
  expect(find(["mm", 3, 10, 5, null])).toEqual({ startNs: 10, durationNs: 5 });
  expect(find(["mm", 3, null, null, null])).toEqual({ step: 3 });
  expect(find(["mm", null, null, null, null])).toEqual({ name: "mm" });
  expect(find([null, null, null, null, null])).toBeNull();
});

test("corrected times are not places; the recorded ones beside them are", () => {
  const find = placesOf(columns("start_ns", "duration_ns", "recorded_start_ns", "recorded_end_ns"))!;
  expect(find([1, 2, 100, 130])).toEqual({ startNs: 100, durationNs: 30 });
});

test("a point in time is a place, a sum of times is not", () => {
  const when: Column = { name: "time_ns", label: "at", kind: "duration" };
  expect(placesOf([when])!([7])).toEqual({ startNs: 7, durationNs: 0 });
  expect(placesOf([{ ...when, label: "Time" }])).toBeNull();
});

test("a table without places has none", () => {
  expect(placesOf(columns("cause", "idle_ns"))).toBeNull();
});

test("places of light steps are in their timeline", () => {
  const find = placesInSteps(placesOf(columns("start_ns", "duration_ns")), "light")!;
  expect(find([10, 5])).toEqual({ startNs: 10, durationNs: 5, steps: "light" });
  expect(find([null, null])).toBeNull();
  expect(placesInSteps(null, "light")).toBeNull();
});
