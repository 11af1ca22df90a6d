// Input: does the program wait for its batches, and how do they reach the device?

import type { JSX } from "preact";
import type { Pane, PaneProps } from "../../page/pane";
import type { Report } from "../../data/answers";
import { Empty } from "../../parts/notes";
import { ReportView } from "../../parts/report/report_view";

// Steps that never wait, and copies that are not there, would be a page of zeros.
function noLoader(report: Report): JSX.Element | null {
  const loader = report.facts.find((fact) => fact.name === "loader")?.value;
  const copies = report.tables.find((table) => table.name === "transfers");
  if (loader !== "none" || (copies && copies.rows.length > 0)) return null;
  return (
    <Empty
      title="No DataLoader in this trace"
      notes={["Nothing here waited for a batch or copied one to the device: the data was there already, or another loader is in use."]}
      how="To see the loader, take its batches inside of the recording:"
      code={"for batch in loader:  # a torch.utils.data.DataLoader\n    train(batch)\n    prof.step()"}
    />
  );
}

export const inputPane: Pane = { id: "input", title: "Input", component: InputPane };

function InputPane(props: PaneProps): JSX.Element {
  return (
    <div class="page">
      <h1 class="sr-only">Input</h1>
      <ReportView
        id="input"
        trace={props.trace}
        verb="input"
        intro="How long each step waits for its next batch (DataLoader), and how batches are copied to the device."
        tables={{ steps: { linkColumn: "step" } }}
        instead={noLoader}
      />
    </div>
  );
}
