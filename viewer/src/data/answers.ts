// What the server's answers look like here: docs/viewer-protocol.md in decoders, with fields in lowerCamel. The types follow
// from the decoders. Only what the page uses is named.

import {
  anything,
  array,
  boolean,
  bulk,
  type Decoded,
  type Decoder,
  Mismatch,
  nullable,
  number,
  object,
  oneOf,
  optional,
  record,
  refine,
  string,
  tuple,
} from "./decode";

// ---- Traces

const traceEntry = object({
  id: number,
  name: string,
  state: oneOf("unloaded", "loading", "ready", "failed"), // unloaded: starts loading when it is chosen
  bytesDone: number,
  bytesTotal: number,
  error: nullable(string),
});
export type TraceEntry = Decoded<typeof traceEntry>;

export const traceList = object({
  reloadS: optional(nullable(number)), // new traces may have arrived after this many seconds
  traces: array(traceEntry),
  panes: optional(array(string)), // of the traces together (`ofSet`), those that the server has answers for
  firstPane: optional(nullable(string)), // shown by a link that names no pane
  // Which traces are compared at first; `by`: with the table of all of them.
  compare: optional(nullable(object({ before: array(number), after: array(number), by: nullable(oneOf("file", "model", "batch")) }))),
});
export type TraceList = Decoded<typeof traceList>;

// Whether times are taken from the light steps of a recording that has full ones, too: a line about both, or null.
export const lightSteps = object({ note: nullable(string) });

// Beside times and places: they are those of the light steps, in a timeline of their own. Otherwise of the trace itself.
const ofSteps = optional(oneOf("light"));
export type OfSteps = "light" | undefined;

// ---- Described reports

const columnKind = oneOf("text", "number", "duration", "bytes", "percent", "bandwidth", "small", "truth");

// `name` keeps the protocol's snake_case: it is data (a CSV header, a SQL column), not one of our fields.
const column = object({ name: string, label: string, kind: columnKind, help: optional(string) });
export type Column = Omit<Decoded<typeof column>, "help"> & {
  help?: string; // a sentence on what it means
  signed?: boolean; // a difference: shown with its sign, and without a bar
};

export type Cell = string | number | boolean | null;

const cell: Decoder<Cell> = (value) => {
  if (value !== null && typeof value === "object") throw new Mismatch("a cell", value);
  return value as Cell;
};

const table = refine(
  object({
    name: string,
    title: string,
    rowCount: number,
    columns: array<Column>(column),
    rows: bulk(bulk(cell)),
    notes: array(string),
  }),
  ({ columns, rows }) => {
    const wrong = rows.findIndex((row) => !Array.isArray(row) || row.length !== columns.length);
    return wrong < 0 ? null : new Mismatch(`one cell for each of ${columns.length} columns`, rows[wrong], `rows[${wrong}]`);
  },
);
export type Table = Decoded<typeof table>;

export const report = object({
  recordedSteps: ofSteps,
  title: string,
  facts: array(object({ name: string, label: string, kind: columnKind, value: cell })),
  tables: array(table),
  notes: array(string),
});
export type Report = Decoded<typeof report>;

// ---- Overview and diagnosis

const topRow = tuple<[name: string, totalNs: number, count: number]>(string, number, number);
export type TopRow = Decoded<typeof topRow>;

// Whether the trace shows what limits a step.
const state = oneOf("judged", "no_verdict", "empty");

const stepRow = object({ step: number, startNs: number, durationNs: number, partsNs: array(number), warmup: boolean });
export type StepRow = Decoded<typeof stepRow>;

export const overview = object({
  environment: array(tuple<[label: string, value: string]>(string, string)),
  verdict: object({
    state,
    label: string,
    reason: string,
    meaning: string,
    stepNs: nullable(number),
    recordedStepNs: nullable(number),
    recordedSteps: ofSteps,
  }),
  // `labels` are the parts in words.
  steps: refine(object({ parts: array(string), labels: array(string), rows: array(stepRow), recordedSteps: ofSteps }), ({ parts, labels, rows }) => {
    if (labels.length !== parts.length) return new Mismatch(`${parts.length} labels`, labels, "labels");
    const wrong = rows.findIndex((row) => row.partsNs.length !== parts.length);
    return wrong < 0 ? null : new Mismatch(`${parts.length} parts`, rows[wrong].partsNs, `rows[${wrong}].parts_ns`);
  }),
  deviceBusy: array(object({ device: number, name: string, busyNs: number, windowNs: number, recordedSteps: ofSteps })),
  topOps: array(topRow),
  topOpsBy: string,
  topKernels: array(topRow),
  topCollectives: array(topRow),
  missing: array(object({ question: string, reason: string, remedy: string })),
});
export type Overview = Decoded<typeof overview>;

// `name`: the line, and where it was called from, without folders.
const place = object({ name: string, line: string, calledFrom: string, timeNs: number, sharePercent: number, mostIn: string });

const finding = object({
  id: string,
  title: string,
  shareOfStepPercent: number,
  gain: object({ saves: string, speedup: string }), // in words; both are "" where nothing is saved
  evidence: object({
    events: array(object({ table: string, row: number, name: string, startNs: number, durationNs: number })),
    ranges: array(object({ startNs: number, endNs: number })),
  }),
  try: object({ text: string, code: string }),
  at: string, // the lines of the program behind it
  confidence: string,
  confirmBy: string,
});
export type Finding = Decoded<typeof finding>;

export const diagnosis = object({
  healthy: boolean,
  headline: string, // above the findings, or instead of them; may be ""
  why: string,
  step: object({
    lowNs: number,
    highNs: number,
    knownFromText: string,
    undecided: boolean,
    judgedSteps: number,
    deviceBusyPercent: number,
  }),
  lines: object({ of: oneOf("host", "device"), largest: array(place) }),
  findings: array(finding),
  notes: array(string),
});
export type Diagnosis = Decoded<typeof diagnosis>;

export const explanation = object({ text: string });

// ---- Timeline

const lane = object({
  id: number,
  group: string,
  kind: string,
  name: string,
  rows: number,
  slices: number,
  firstNs: number,
  lastNs: number,
  busyNs: number,
});
export type Lane = Decoded<typeof lane>;

// A counter without a finite sample has neither minimum nor maximum.
const counterTrack = object({
  id: number,
  group: string,
  name: string,
  unit: string,
  min: nullable(number),
  max: nullable(number),
  samples: number,
});
export type CounterTrack = Decoded<typeof counterTrack>;

const stepMark = object({ number, startNs: number, durationNs: number });
export type StepMark = Decoded<typeof stepMark>;

export const lanes = object({
  endNs: number,
  lanes: array(lane),
  counters: array(counterTrack),
  steps: array(stepMark),
  sampled: optional(array(object({ id: number, name: string }))), // threads with stack samples, most samples first
});
export type Lanes = Decoded<typeof lanes>;

const bins = bulk(nullable(number));

export const counterBins = object({
  fromNs: number,
  binNs: number,
  tracks: array(
    refine(object({ id: number, min: bins, max: bins, last: bins }), ({ min, max }) =>
      min.length === max.length ? null : new Mismatch(`${max.length} bins`, min, "min"),
    ),
  ),
});
export type CounterBins = Decoded<typeof counterBins>;

const kFoundSlice = { ref: string, lane: number, row: number, name: string, startNs: number, durationNs: number };
const foundSlice = object(kFoundSlice);
export type FoundSlice = Decoded<typeof foundSlice>;

const arrow = object({ kind: string, from: foundSlice, to: foundSlice });
export type Arrow = Decoded<typeof arrow>;

export const sliceDetail = object({
  ...kFoundSlice,
  kind: string,
  category: string,
  selfNs: nullable(number),
  step: nullable(number),
  occupancy: nullable(object({ percent: number, limitText: string })), // "": nothing limits it, or not known
  args: record(anything),
  stack: array(string),
  module: nullable(string),
  parent: nullable(foundSlice),
  children: array(foundSlice),
  childCount: number,
  arrows: array(arrow),
  sameName: object({
    count: number,
    totalNs: number,
    minNs: number,
    medianNs: number,
    maxNs: number,
    longer: number,
    previous: nullable(foundSlice),
    next: nullable(foundSlice),
  }),
});
export type SliceDetail = Decoded<typeof sliceDetail>;

export const searchAnswer = object({
  slices: number,
  names: array(object({ name: string, slices: number, totalNs: number })),
  density: bulk(number),
});
export type SearchAnswer = Decoded<typeof searchAnswer>;

export const findAnswer = object({ slice: nullable(foundSlice) });

const gap = object({ lane: number, startNs: number, durationNs: number, causeText: string });
export type Gap = Decoded<typeof gap>;

export const gapAnswer = object({ gap: nullable(gap) });

// ---- Stacks and memory

const flameNode = tuple<[depth: number, startNs: number, widthNs: number, name: string, selfNs: number, count: number]>(
  number,
  number,
  number,
  string,
  number,
  number,
);
export type FlameNode = Decoded<typeof flameNode>;

const flameNodes = refine(bulk(flameNode), (nodes) => {
  const wrong = nodes.findIndex((node) => !Array.isArray(node) || node.length !== 6);
  return wrong < 0 ? null : new Mismatch("an array of 6", nodes[wrong], `[${wrong}]`);
});

export const flame = object({ totalNs: number, note: string, nodes: flameNodes });
export type Flame = Decoded<typeof flame>;

// In pre-order: a frame, then what is below it.
const flameChange = tuple<[depth: number, name: string, beforeNs: number, afterNs: number]>(number, string, number, number);
export type FlameChange = Decoded<typeof flameChange>;

export const flameDifference = refine(
  object({ beforeNs: number, afterNs: number, note: string, nodes: bulk(flameChange) }),
  ({ nodes }) => {
    const wrong = nodes.findIndex((node, at) => {
      const above = at === 0 ? -1 : nodes[at - 1][0];
      return !Array.isArray(node) || node.length !== 4 || !(node[0] >= 0 && node[0] <= above + 1);
    });
    return wrong < 0 ? null : new Mismatch("a frame at most one below the last", nodes[wrong], `nodes[${wrong}]`);
  },
);
export type FlameDifference = Decoded<typeof flameDifference>;

// `device` is null, and the curves are empty, where the trace has no memory events.
export const memoryCurve = refine(
  object({
    devices: array(string),
    device: nullable(string),
    fromNs: number,
    binNs: number,
    allocatedBytes: bins,
    reservedBytes: bins,
    // Reserved by the allocator but unused, in total and in one piece; missing where the trace has no allocator state.
    freeBytes: optional(bins),
    largestFreeBytes: optional(bins),
    categories: record(bins),
  }),
  ({ allocatedBytes, categories }) => {
    const wrong = Object.keys(categories).find((name) => categories[name].length !== allocatedBytes.length);
    const expected = `${allocatedBytes.length} bins`;
    return wrong === undefined ? null : new Mismatch(expected, categories[wrong], `categories.${wrong}`);
  },
);
export type MemoryCurve = Decoded<typeof memoryCurve>;

export const memorySegments = object({
  segments: array(
    object({
      bytes: number,
      blocks: array(
        object({ offset: number, bytes: number, state: oneOf("allocated", "free"), owner: nullable(string) }),
      ),
    }),
  ),
  notes: array(string),
});
export type MemorySegments = Decoded<typeof memorySegments>;
