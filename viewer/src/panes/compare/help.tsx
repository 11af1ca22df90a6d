// The Compare pane's part of the help dialog.

import type { JSX } from "preact";

export function CompareHelp(): JSX.Element {
  return (
    <>
      <h2>Compare</h2>
      <ul>
        <li>Timelines: the timeline's keys and mouse, in the one that has the focus; the other one follows it, step by step.</li>
        <li>Flame graph: arrow keys go to the caller, the longest callee and the neighbors; Enter zooms in, Esc zooms out.</li>
        <li>Tables: Enter, or a click on the operator, marks the row's kernel or operator in both timelines.</li>
      </ul>
    </>
  );
}
