import { expect, test } from "vitest";
import type { TraceEntry, TraceList } from "../../data/answers";
import { moved, notReady, sideName, sidesOf } from "./sides";

const entry = (id: number, state: TraceEntry["state"] = "ready"): TraceEntry => ({
  id,
  name: `run${id}.lane`,
  state,
  bytesDone: 0,
  bytesTotal: 0,
  error: null,
});
const list = (...traces: TraceEntry[]): TraceList => ({
  traces,
  reloadS: null,
  panes: ["compare"],
  firstPane: null,
  compare: { before: [0], after: [1], by: null },
});

test("the link's sides win, those of the server are the default, and unknown traces are ignored", () => {
  const three = list(entry(0), entry(1), entry(2));
  expect(sidesOf(three, "", "")).toEqual({ before: [0], after: [1] });
  expect(sidesOf(three, "2", "0,1,1,9,x")).toEqual({ before: [2], after: [0, 1] });
  expect(sidesOf(three, "7", "1")).toEqual({ before: [0], after: [1] });
  expect(sidesOf({ ...three, compare: null }, "", "")).toBeNull();
});

test("a trace moves to the other side, or out of the comparison, as long as both sides keep one", () => {
  const sides = { before: [0, 2], after: [1] };
  expect(moved(sides, 2, "after")).toEqual({ "compare.before": "0", "compare.after": "1,2" });
  expect(moved(sides, 2, "neither")).toEqual({ "compare.before": "0", "compare.after": "1" });
  expect(moved(sides, 1, "neither")).toBeNull();
});

test("a side is named by its first trace and how many more it has", () => {
  const traces = [entry(0), entry(1)];
  expect(sideName([1], traces)).toBe("run1.lane");
  expect(sideName([1, 0], traces)).toBe("run1.lane and 1 more");
});

test("only the traces that are compared are waited for", () => {
  const traces = list(entry(0), entry(1, "loading"), entry(2, "failed"));
  expect(notReady(traces, { before: [0], after: [1] }).loading.map((each) => each.id)).toEqual([1]);
  expect(notReady(traces, { before: [0], after: [2] }).failed.map((each) => each.id)).toEqual([2]);
  expect(notReady(traces, { before: [0], after: [0] })).toEqual({ loading: [], failed: [] });
});
