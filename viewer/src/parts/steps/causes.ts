// Labels and colors for the parts of a step: the same in the overview, in Steps and in comparisons.
// Names are those of the overview's `steps.parts`: "compute", "idle: host_op", ... or, without a device, host activities.

import type { OfSteps } from "../../data/answers";

interface Cause {
  label: string;
  variable: string; // of its color
}

// What the host was doing: while the device was idle ("idle: host_python"), or by itself ("python").
const kHost: Record<string, Cause> = {
  input: { label: "waiting for the next batch", variable: "--c4" },
  python: { label: "running Python", variable: "--c2" },
  op: { label: "in operators", variable: "--c1" },
  launch: { label: "launching work", variable: "--c5" },
  call: { label: "in other runtime calls", variable: "--c6" },
  sync: { label: "waiting for the device", variable: "--c7" },
  allocation: { label: "allocating device memory", variable: "--c6" },
  gc: { label: "collecting garbage (Python GC)", variable: "--c4" },
  loading: { label: "loading kernels", variable: "--c6" },
  recorder: { label: "in the profiler", variable: "--c8" },
  collective: { label: "waiting for other ranks", variable: "--c7" },
  no_core: { label: "waiting for a core (other programs used them)", variable: "--c8" },
  unrecorded: { label: "between operators (Python or unrecorded code)", variable: "--c2" },
};

// Light steps know operators by their launches alone.
const kLightHost: Record<string, string> = {
  op: "inside operators, between their launches",
  unrecorded: "in Python or in operators (light steps do not distinguish)",
};

const kDevice: Record<string, Cause> = {
  compute: { label: "computing", variable: "--c3" },
  communication: { label: "communicating", variable: "--c7" },
  copy: { label: "copying", variable: "--c6" },
  "idle: launch_latency": { label: "idle: launched but not started", variable: "--c5" },
  "idle: between_work": { label: "idle: between queued kernels", variable: "--c6" },
  "idle: other_stream": { label: "idle: waiting for another stream", variable: "--c7" },
  "idle: unknown": { label: "idle: unknown cause", variable: "--c8" },
  rest: { label: "other", variable: "--c8" },
};

function causeOf(part: string, steps?: OfSteps): Cause | null {
  if (Object.hasOwn(kDevice, part)) return kDevice[part];
  const idle = /^idle: host_(\w+)$/.exec(part);
  if (idle && Object.hasOwn(kHost, idle[1])) {
    const cause = kHost[idle[1]];
    const label = (steps === "light" && kLightHost[idle[1]]) || cause.label;
    const host = idle[1] === "input" || idle[1] === "recorder" ? "" : "host was ";
    return { label: `idle: ${host}${label}`, variable: cause.variable };
  }
  return Object.hasOwn(kHost, part) ? kHost[part] : null;
}

export function causeLabel(part: string, steps?: OfSteps): string {
  return causeOf(part, steps)?.label ?? part.replaceAll("_", " ");
}

// The cause of a gap: "host_python".
export function gapLabel(cause: string, steps?: OfSteps): string {
  return causeLabel(`idle: ${cause}`, steps).replace(/^idle: /, "");
}

// A color for each part: its own, or the next free one where a larger part has taken it. Colors repeat only when they run out.
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
