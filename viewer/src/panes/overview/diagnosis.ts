// How the overview words a diagnosis. Pure.

import type { Finding } from "../../data/answers";

// "1.43x to 2.92x as fast", or "" when nothing would be saved.
export function speedup(gain: Pick<Finding["gain"], "highNs" | "lowSpeedup" | "highSpeedup">): string {
  if (gain.highNs <= 0) return "";
  // Where hardly anything would be left of a step, its inverse is no number to go by; the command says the same.
  const most = 20;
  if (gain.lowSpeedup > most) return `more than ${most}x as fast`;
  if (gain.highSpeedup > most) return `${gain.lowSpeedup.toFixed(2)}x or more as fast`;
  const low = `${gain.lowSpeedup.toFixed(2)}x`;
  const high = `${gain.highSpeedup.toFixed(2)}x`;
  return low === high ? `${high} as fast` : `${low} to ${high} as fast`;
}

// The ref of a finding's event: `h12` or `d7`.
export function eventRef(event: { table: string; row: number }): string {
  return `${event.table === "device_slices" ? "d" : "h"}${event.row}`;
}

// Titles arrive as parts of sentences. A name of the program's (zero_grad) stays as it is written.
export function capitalize(text: string): string {
  if (/^\w*[_.(]/.test(text)) return text;
  return text === "" ? text : text[0].toUpperCase() + text.slice(1);
}
