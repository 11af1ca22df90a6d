// How the overview words a diagnosis. Pure.

import type { Diagnosis } from "../../data/answers";

// Finding nothing is good news only if there was enough data to judge.
export function isHealthy(diagnosis: Pick<Diagnosis, "healthy" | "limit">): boolean {
  return diagnosis.healthy && diagnosis.limit !== "unknown";
}

// "1.43x to 2.92x as fast", or "" when nothing would be saved. Gains are time saved per step of `stepNs`.
export function speedup(stepNs: number, gain: { lowNs: number; highNs: number }): string {
  if (stepNs <= 0 || gain.highNs <= 0) return "";
  const times = (savedNs: number) => `${(stepNs / Math.max(stepNs - savedNs, stepNs / 1000)).toFixed(2)}x`;
  const low = times(gain.lowNs);
  const high = times(gain.highNs);
  return low === high ? `${high} as fast` : `${low} to ${high} as fast`;
}

// "input-bound: the program waits ..." as its name and its sentence.
export function splitVerdict(text: string): { head: string; rest: string } {
  const at = text.indexOf(": ");
  if (at < 0 || at > 40) return { head: "", rest: text };
  return { head: text.slice(0, at), rest: text.slice(at + 2) };
}

// The ref of a finding's event: `h12` or `d7`.
export function eventRef(event: { table: string; row: number }): string {
  return `${event.table === "device_slices" ? "d" : "h"}${event.row}`;
}

// Titles arrive as parts of sentences.
export function capitalize(text: string): string {
  return text === "" ? text : text[0].toUpperCase() + text.slice(1);
}
