// The decoders against docs/viewer-protocol.md, whose examples must decode, and against answers that break its promises.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as answers from "./answers";
import { decodeAnswer, type Decoder } from "./decode";

const kProtocol = readFileSync(new URL("../../../docs/viewer-protocol.md", import.meta.url), "utf8");
const kFound = { ref: "h1", lane: 0, row: 0, name: "mm", start_ns: 1, duration_ns: 2 };

// The JSON block below a heading. `{}` stands for a found slice there, except for args.
function example(heading: string): unknown {
  const block = new RegExp(`### ${heading}\\n[^#]*?\`\`\`json\\n([^]*?)\`\`\``).exec(kProtocol);
  if (!block) throw new Error(`viewer-protocol.md has no example below "${heading}"`);
  return JSON.parse(block[1], (key, value: unknown) =>
    key !== "args" && value !== null && typeof value === "object" && Object.keys(value).length === 0 && !Array.isArray(value)
      ? kFound
      : value,
  );
}

test.each<[string, Decoder<unknown>]>([
  ["A described report", answers.report],
  ["Overview", answers.overview],
  ["Lanes", answers.lanes],
  ["Slice", answers.sliceDetail],
  ["Differential flame graph", answers.flameDifference],
])("the protocol's example decodes: %s", (heading, decode) => {
  expect(decodeAnswer(heading, decode, example(heading))).toBeTruthy();
});

const table = (rows: unknown) => ({
  title: "",
  facts: [],
  tables: [{ name: "t", title: "", row_count: 2, columns: [{ name: "a", label: "A", kind: "text" }], rows, notes: [] }],
  notes: [],
});

test("every row of a table has a cell for each column", () => {
  expect(answers.report(table([["x"], [null]])).tables[0].rows).toEqual([["x"], [null]]);
  expect(() => decodeAnswer("r", answers.report, table([["x"], []]))).toThrow(/tables\[0\]\.rows\[1\]: expected one cell/);
  expect(() => decodeAnswer("r", answers.report, table([["x"], "y"]))).toThrow(/tables\[0\]\.rows\[1\]: expected one cell/);
  expect(() => decodeAnswer("r", answers.report, table([[{}]]))).toThrow(/rows\[0\]\[0\]: expected a cell, got an object/);
});

test("the curves of an answer have the same length", () => {
  const curve = { devices: ["cpu"], device: "cpu", from_ns: 0, bin_ns: 1, allocated_bytes: [1, 2], reserved_bytes: [] };
  expect(answers.memoryCurve({ ...curve, categories: { "optimizer state": [1, 2] } }).categories).toEqual({
    "optimizer state": [1, 2],
  });
  expect(() => decodeAnswer("c", answers.memoryCurve, { ...curve, categories: { inputs: [1] } })).toThrow(
    /categories\.inputs: expected 2 bins/,
  );
  const track = { id: 0, min: [1], max: [1, 2], last: [1, 2] };
  expect(() => decodeAnswer("c", answers.counterBins, { from_ns: 0, bin_ns: 1, tracks: [track] })).toThrow(
    /tracks\[0\]\.min: expected 2 bins/,
  );
});

test("a step has a time for each part", () => {
  const rows = [{ step: 1, start_ns: 0, duration_ns: 1, parts_ns: [1], warmup: false }];
  const labels = ["computing", "waiting for another stream"];
  const overview = { ...(example("Overview") as object), steps: { parts: ["compute", "idle: other_stream"], labels, rows } };
  expect(() => decodeAnswer("o", answers.overview, overview)).toThrow(/steps\.rows\[0\]\.parts_ns: expected 2 parts/);
  const unnamed = { ...overview, steps: { ...overview.steps, labels: ["computing"] } };
  expect(() => decodeAnswer("o", answers.overview, unnamed)).toThrow(/steps\.labels: expected 2 labels/);
});

test("a finding has its gain and its lines in words", () => {
  const finding = {
    id: "launch-overhead",
    title: "the host cannot feed the device",
    share_of_step_percent: 12,
    gain: { low_ns: 1, high_ns: 2, saves: "1 ns to 2 ns per step", speedup: "1.05x to 1.11x as fast" },
    evidence: { events: [], ranges: [] },
    try: { text: "launch less often", code: "" },
    at: "model.py(41): forward",
    confidence: "high",
    confirm_by: "",
  };
  const step = { low_ns: 1, high_ns: 2, known_from_text: "estimated", undecided: false, judged_steps: 3, device_busy_percent: 40 };
  const diagnosis = { healthy: false, headline: "What to fix", why: "", step, lines: { of: "host", largest: [] }, findings: [finding], notes: [] };
  expect(decodeAnswer("d", answers.diagnosis, diagnosis).findings[0].gain.speedup).toBe("1.05x to 1.11x as fast");
  const silent = { ...diagnosis, findings: [{ ...finding, gain: { speedup: "" } }] };
  expect(() => decodeAnswer("d", answers.diagnosis, silent)).toThrow(/findings\[0\]\.gain\.saves/);
});

test("a trace without memory events has no device and no curves", () => {
  const none = { devices: [], device: null, from_ns: 0, bin_ns: 1, allocated_bytes: [], reserved_bytes: [], categories: {} };
  expect(answers.memoryCurve(none).device).toBeNull();
});

test("a frame of a differential flame graph is at most one below the last", () => {
  const flame = (nodes: unknown) => ({ before_ns: 1, after_ns: 1, note: "", nodes });
  expect(answers.flameDifference(flame([[0, "a", 1, 1], [1, "b", 1, 0], [0, "c", 0, 1]])).nodes).toHaveLength(3);
  for (const nodes of [[[1, "a", 1, 1]], [[0, "a", 1, 1], [2, "b", 1, 1]], [[0, "a", 1, 1], [1, "b", 1]], [[0, "a", 1, 1], [-1, "b", 1, 1]]]) {
    expect(() => decodeAnswer("f", answers.flameDifference, flame(nodes))).toThrow(/^f: nodes/);
  }
});

test("the list of traces says which panes of the set there are, or nothing", () => {
  const list = { version: "1", traces: [] };
  expect(decodeAnswer("traces", answers.traceList, list).panes).toBeUndefined();
  const compare = { before: [0], after: [1, 2], by: null };
  expect(decodeAnswer("traces", answers.traceList, { ...list, panes: ["compare"], first_pane: null, compare }).compare).toEqual(compare);
  expect(() => decodeAnswer("traces", answers.traceList, { ...list, compare: { ...compare, by: "x" } })).toThrow(/compare\.by/);
});
