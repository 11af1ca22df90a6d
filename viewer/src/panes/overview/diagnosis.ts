// What the overview says about a diagnosis. Pure.

import type { Diagnosis } from "../../data/answers";

// Nothing found is good news only where something could be judged.
export function isHealthy(diagnosis: Pick<Diagnosis, "healthy" | "limit">): boolean {
  return diagnosis.healthy && diagnosis.limit !== "unknown";
}

// "1.43x to 2.92x as fast", or "" when nothing would be saved. The gains are parts of `stepNs`.
export function speedUp(stepNs: number, gain: { lowNs: number; highNs: number }): string {
  if (stepNs <= 0 || gain.highNs <= 0) return "";
  const times = (savedNs: number) => `${(stepNs / Math.max(stepNs - savedNs, stepNs / 1000)).toFixed(2)}x`;
  const low = times(gain.lowNs);
  const high = times(gain.highNs);
  return low === high ? `${high} as fast` : `${low} to ${high} as fast`;
}

// The verdict's two halves: what it is called, and what it says. "input-bound: the program waits ...".
export function splitVerdict(text: string): { head: string; rest: string } {
  const at = text.indexOf(": ");
  if (at < 0 || at > 40) return { head: "", rest: text };
  return { head: text.slice(0, at), rest: text.slice(at + 2) };
}

// `h12` or `d7` of a finding's event.
export function eventRef(event: { table: string; row: number }): string {
  return `${event.table === "device_slices" ? "d" : "h"}${event.row}`;
}

// First letter in capitals: titles come as parts of sentences.
export function sentence(text: string): string {
  return text === "" ? text : text[0].toUpperCase() + text.slice(1);
}
