// Input: does the program wait for its batches, and how do they reach the device?

import type { JSX } from "preact";
import type { PaneProps } from "../app/pane";
import { ReportView } from "./report_pane";

export function InputPane(props: PaneProps): JSX.Element {
  return (
    <div class="page">
      <h1 class="sr-only">Input</h1>
      <ReportView
        id="input"
        trace={props.trace}
        verb="input"
        intro="How long each step waits for its next batch (DataLoader), and how batches are copied to the device."
        tables={{ steps: { linkColumn: "step" } }}
      />
    </div>
  );
}
