// How the overview shows a diagnosis. Pure.

// The ref of a finding's event: `h12` or `d7`.
export function eventRef(event: { table: string; row: number }): string {
  return `${event.table === "device_slices" ? "d" : "h"}${event.row}`;
}

// Titles arrive as parts of sentences. A name of the program's (zero_grad) stays as it is written.
export function capitalize(text: string): string {
  if (/^\w*[_.(]/.test(text)) return text;
  return text === "" ? text : text[0].toUpperCase() + text.slice(1);
}
