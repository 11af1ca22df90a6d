// Facts about a slice beyond its args. Pure.

import type { SliceDetail } from "../../data/answers";
import { formatByKind, formatBytes, formatPercent } from "../../text/format";

// Occupancy of a kernel, bandwidth of a copy, and whether the recording has all of it.
export function workFacts(detail: Pick<SliceDetail, "kind" | "occupancy" | "args">): [string, string][] {
  const { occupancy, args, kind } = detail;
  const out: [string, string][] = [];
  if (occupancy) {
    const limit = occupancy.limitText ? `, limited by ${occupancy.limitText}` : "";
    out.push(["Occupancy", `${formatPercent(occupancy.percent)}${limit}`]);
  }
  if ((kind === "copy" || kind === "set") && typeof args.bytes === "number") {
    const speed = args["memory bandwidth (GB/s)"];
    out.push(["Bytes", `${formatBytes(args.bytes)}${typeof speed === "number" ? ` at ${formatByKind("bandwidth", speed)}` : ""}`]);
  }
  if (typeof args.window === "string" && args.window !== "") out.push(["Recorded", `in part: ${args.window} the recording`]);
  return out;
}

// An arg as text: floats without noise digits.
export function argText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(6)));
  return JSON.stringify(value);
}
