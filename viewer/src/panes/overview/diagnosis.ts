// How the overview words a diagnosis. Pure.

import type { Finding, Place } from "../../data/answers";
import { formatPercent } from "../../text/format";

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

// "model.py(41): forward, from train.py(12): main": without folders.
export function placeName(place: Pick<Place, "line" | "calledFrom" | "callers">): string {
  const short = (line: string) => line.replace(/^.*\/(?=[^/]*\.py\()/, "");
  const from = place.calledFrom ? `, from ${short(place.calledFrom)}` : "";
  const callers = place.callers.map(short);
  const last = callers.pop();
  const called = last ? `, called at ${callers.length > 0 ? `${callers.join(", ")} and ` : ""}${last}` : "";
  return short(place.line) + from + called;
}

// The lines behind a finding, with their shares where there is more than one to tell apart.
export function placesText(places: Place[]): string {
  if (places.length === 1 && places[0].sharePercent > 99) return placeName(places[0]);
  return places.map((place) => `${placeName(place)} (${formatPercent(place.sharePercent)})`).join(", ");
}

// Titles arrive as parts of sentences. A name of the program's (zero_grad) stays as it is written.
export function capitalize(text: string): string {
  if (/^\w*[_.(]/.test(text)) return text;
  return text === "" ? text : text[0].toUpperCase() + text.slice(1);
}
