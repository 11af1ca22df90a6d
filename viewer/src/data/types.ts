// What the protocol's answers look like here (docs/viewer-protocol.md): the same words, in lowerCamel.

export interface TraceEntry {
  id: number;
  name: string;
  state: "unloaded" | "loading" | "ready" | "failed"; // unloaded: begins to load when it is chosen
  bytesDone: number;
  bytesTotal: number;
  error: string | null;
}

export interface TraceList {
  version: string;
  reloadS?: number | null; // there may be new traces after so many seconds
  traces: TraceEntry[];
}

export interface Finding {
  id: string;
  title: string;
  shareOfStep: number | null;
  gainLowNs: number | null;
  gainHighNs: number | null;
  confidence: string;
}

export type TopRow = [name: string, totalNs: number, count: number];

export interface StepRow {
  step: number;
  startNs: number;
  durationNs: number;
  partsNs: number[];
  warmup: boolean;
}

export interface Overview {
  name: string;
  format: string;
  durationNs: number;
  eventCount: number;
  environment: [string, string][];
  verdict: { text: string; bound: string; stepNs: number | null; recordedStepNs: number | null };
  findings: Finding[];
  steps: { parts: string[]; rows: StepRow[] };
  deviceBusy: { device: number; busyNs: number; windowNs: number }[];
  topOps: TopRow[];
  topKernels: TopRow[];
  missing: string[];
}

export type ColumnKind = "text" | "number" | "duration" | "bytes" | "percent" | "bandwidth" | "small" | "truth";

// `name` keeps the protocol's snake_case: it is data (a CSV header, a SQL column), not a field of ours.
export interface Column {
  name: string;
  label: string;
  kind: ColumnKind;
  signed?: boolean; // a difference: with its sign, and no bar
}

export type Cell = string | number | boolean | null;

export interface Table {
  name: string;
  title: string;
  rowCount: number;
  columns: Column[];
  rows: Cell[][];
  notes: string[];
}

export interface Report {
  title: string;
  facts: { name: string; label: string; kind: ColumnKind; value: Cell }[];
  tables: Table[];
  notes: string[];
}

export interface Lane {
  id: number;
  group: string;
  kind: string;
  name: string;
  rows: number;
  slices: number;
  firstNs: number;
  lastNs: number;
  busyNs: number;
}

export interface CounterTrack {
  id: number;
  group: string;
  name: string;
  unit: string;
  min: number;
  max: number;
  samples: number;
}

export interface StepMark {
  number: number;
  startNs: number;
  durationNs: number;
}

export interface Lanes {
  endNs: number;
  lanes: Lane[];
  counters: CounterTrack[];
  steps: StepMark[];
}

export interface CounterBins {
  fromNs: number;
  binNs: number;
  tracks: { id: number; min: (number | null)[]; max: (number | null)[]; last: (number | null)[] }[];
}

export interface FoundSlice {
  ref: string;
  lane: number;
  row: number;
  name: string;
  startNs: number;
  durationNs: number;
}

export interface Arrow {
  kind: string;
  from: FoundSlice;
  to: FoundSlice;
}

export interface SliceDetail extends FoundSlice {
  kind: string;
  category: string;
  selfNs: number | null;
  step: number | null;
  occupancy: { percent: number; limit: string } | null;
  args: Record<string, unknown>;
  stack: string[];
  module: string | null;
  parent: FoundSlice | null;
  children: FoundSlice[];
  childCount: number;
  arrows: Arrow[];
  sameName: {
    count: number;
    totalNs: number;
    minNs: number;
    medianNs: number;
    maxNs: number;
    longer: number;
    previous: FoundSlice | null;
    next: FoundSlice | null;
  };
}

export interface SearchAnswer {
  slices: number;
  names: { name: string; slices: number; totalNs: number }[];
  density: number[];
}

export interface Gap {
  lane: number;
  startNs: number;
  durationNs: number;
  cause: string;
}

export type FlameNode = [depth: number, startNs: number, widthNs: number, name: string, selfNs: number, count: number];

export interface Flame {
  totalNs: number;
  note: string;
  nodes: FlameNode[];
}

export interface MemoryCurve {
  devices: string[];
  device: string;
  fromNs: number;
  binNs: number;
  allocatedBytes: (number | null)[];
  reservedBytes: (number | null)[];
  // What the allocator holds and nobody uses, in all and in one piece; absent where the trace does not tell.
  freeBytes?: (number | null)[];
  largestFreeBytes?: (number | null)[];
  categories: Record<string, (number | null)[]>;
}

export interface MemorySegments {
  segments: {
    address: string | number;
    bytes: number;
    blocks: { offset: number; bytes: number; state: "allocated" | "free"; owner: string | null }[];
  }[];
  notes: string[];
}
