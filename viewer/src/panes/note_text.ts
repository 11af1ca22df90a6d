// Notes of reports as the page shows them. They are written for the command line, too: what names a flag of that is left out,
// the page has its own controls.

const kFlag = /(^|\s)--[a-z]/;

export function notesForPage(notes: readonly string[]): string[] {
  return notes
    .map((note) =>
      note
        .split("; ")
        .filter((part) => !kFlag.test(part))
        .join("; "),
    )
    .filter((note) => note !== "");
}
