import { expect, test } from "vitest";
import { TraceClient } from "./client";
import { SetClient } from "./set_client";
import { requestKey, StoredSource } from "./source";

test("requests are written as in the protocol, without parameters that are not set", () => {
  expect(requestKey("t/0/find", { text: "a&b c", exact: true, lane: undefined })).toBe(
    "t/0/find?text=a%26b%20c&exact=1",
  );
  expect(requestKey("traces")).toBe("traces");
});

test("a report answers from what it holds, and otherwise says what to do", async () => {
  const source = new StoredSource({
    "t/0/lanes": { json: { end_ns: 5, lanes: [], counters: [], steps: [] } },
    "t/0/counters?from_ns=0&to_ns=9&bins=4&tracks=0": { json: { from_ns: 0, bin_ns: 2, tracks: [] } },
    "t/0/tiles?level=1&first=0&count=1&lanes=0": { base64: "AAEC" },
    "t/0/report/ops": { json: { title: "Operators", facts: [], tables: [], notes: [] } },
  });
  const trace = new TraceClient(source, 0, "x");
  expect((await trace.lanes()).endNs).toBe(5);
  expect((await trace.counters(3, 4, 100, [0])).binNs).toBe(2);
  expect((await trace.report("ops", { rows: 50 })).title).toBe("Operators");
  expect([...new Uint8Array([...source.allBytes("t/0/tiles?")][0])]).toEqual([0, 1, 2]);
  await expect(trace.slice("h1")).rejects.toThrow(/firelane view/);
  await expect(trace.sql("select 1")).rejects.toThrow(/firelane view/);
  await expect(source.json("constructor")).rejects.toThrow();
});

test("light steps are asked for as a trace of their own", async () => {
  const source = new StoredSource({ "t/0.light/lanes": { json: { end_ns: 7, lanes: [], counters: [], steps: [] } } });
  expect((await new TraceClient(source, 0, "x", "light").lanes()).endNs).toBe(7);
  await expect(new TraceClient(source, 0, "x").lanes()).rejects.toThrow();
});

test("a report of a comparison answers for its sides, however many runs they have", async () => {
  const report = { title: "Comparison", facts: [], tables: [], notes: [] };
  const source = new StoredSource({
    "compare?before=0,1&after=2": { json: report },
    "compare/flame?before=0,1&after=2&by=op&bins=1000": { json: { before_ns: 1, after_ns: 2, note: "", nodes: [] } },
    "runs?by=file": { json: { ...report, title: "Runs" } },
  });
  const set = new SetClient(source, { traces: [], reloadS: null, panes: ["compare"], firstPane: null, compare: null });
  const sides = { before: [0, 1], after: [2] };
  expect((await set.compare(sides)).title).toBe("Comparison");
  expect((await set.compareFlame(sides, "op", 1000)).afterNs).toBe(2);
  expect((await set.runs("file")).title).toBe("Runs");
  await expect(set.compare({ before: [2], after: [0] })).rejects.toThrow(/firelane view/);
});
