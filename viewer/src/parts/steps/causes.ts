// The parts of a step in words and colours: the same in the overview, in Steps and in comparisons.
// Names are those of the overview's `steps.parts`: "compute", "idle: host_op", ... or, without a device, host activities.

interface Cause {
  words: string;
  variable: string; // its colour
}

// What the host did: while the device idled ("idle: host_python") or, on its own, "python".
const kHost: Record<string, Cause> = {
  input: { words: "waiting for the next batch", variable: "--c4" },
  python: { words: "running Python", variable: "--c2" },
  op: { words: "inside operators", variable: "--c1" },
  launch: { words: "queueing work", variable: "--c5" },
  call: { words: "in other CUDA calls", variable: "--c6" },
  sync: { words: "waiting for the device", variable: "--c7" },
  allocation: { words: "allocating device memory", variable: "--c6" },
  gc: { words: "collecting Python garbage", variable: "--c4" },
  loading: { words: "loading kernels", variable: "--c6" },
  recorder: { words: "in the profiler itself", variable: "--c8" },
  unrecorded: { words: "between operators (Python or code that was not recorded)", variable: "--c2" },
};

const kDevice: Record<string, Cause> = {
  compute: { words: "computing", variable: "--c3" },
  communication: { words: "communicating", variable: "--c7" },
  copy: { words: "copying", variable: "--c6" },
  "idle: launch_latency": { words: "idle: launched, not yet started", variable: "--c5" },
  "idle: between_work": { words: "idle: between queued kernels", variable: "--c6" },
  "idle: other_stream": { words: "idle: waiting for another stream", variable: "--c7" },
  "idle: unknown": { words: "idle: not known from this trace", variable: "--c8" },
  rest: { words: "the rest", variable: "--c8" },
};

function causeOf(part: string): Cause | null {
  if (Object.hasOwn(kDevice, part)) return kDevice[part];
  const late = /^idle: host_(\w+)$/.exec(part);
  if (late && Object.hasOwn(kHost, late[1])) {
    const cause = kHost[late[1]];
    const host = late[1] === "input" || late[1] === "recorder" ? "" : "the host was ";
    return { words: `idle: ${host}${cause.words}`, variable: cause.variable };
  }
  return Object.hasOwn(kHost, part) ? kHost[part] : null;
}

export function causeWords(part: string): string {
  return causeOf(part)?.words ?? part.replaceAll("_", " ");
}

// Why a gap is there: "host_python".
export function gapWords(cause: string): string {
  return causeWords(`idle: ${cause}`).replace(/^idle: /, "");
}

// A colour for each part, none twice as long as there are enough: the part's own, or the next free one. Where two want the
// same, the larger one has it.
export function causeColors(parts: readonly string[], sizes: readonly number[] = []): string[] {
  const free = new Set(["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"]);
  const order = parts.map((_, at) => at).sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  const out: (string | null)[] = parts.map(() => null);
  for (const at of order) {
    const wanted = causeOf(parts[at])?.variable ?? "--c8";
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
