// Colors for the parts of a step: the same in the overview, in Steps and in comparisons. What parts are called comes with
// them (`steps.labels` of the overview).

// What the host was doing: while the device was idle ("idle: host_python"), or by itself ("python").
const kHost: Readonly<Record<string, string>> = {
  input: "--c4",
  python: "--c2",
  op: "--c1",
  launch: "--c5",
  call: "--c6",
  sync: "--c7",
  allocation: "--c6",
  gc: "--c4",
  loading: "--c6",
  recorder: "--c8",
  collective: "--c7",
  no_core: "--c8",
  unrecorded: "--c2",
};

const kDevice: Readonly<Record<string, string>> = {
  compute: "--c3",
  communication: "--c7",
  copy: "--c6",
  "idle: launch_latency": "--c5",
  "idle: between_work": "--c6",
  "idle: other_stream": "--c7",
};

function ownColor(part: string): string {
  if (Object.hasOwn(kDevice, part)) return kDevice[part];
  const activity = /^idle: host_(\w+)$/.exec(part)?.[1] ?? part;
  return Object.hasOwn(kHost, activity) ? kHost[activity] : "--c8";
}

// A color for each part: its own, or the next free one where a larger part has taken it. Colors repeat only when they run out.
export function causeColors(parts: readonly string[], sizes: readonly number[] = []): string[] {
  const free = new Set(["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"]);
  const order = parts.map((_, at) => at).sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  const out: (string | null)[] = parts.map(() => null);
  for (const at of order) {
    const wanted = ownColor(parts[at]);
    if (free.delete(wanted) || parts[at] === "rest") out[at] = wanted;
  }
  for (const at of order) {
    if (out[at]) continue;
    const [next] = free;
    free.delete(next);
    out[at] = next ?? "--c8";
  }
  return out.map((variable) => variable ?? "--c8");
}
