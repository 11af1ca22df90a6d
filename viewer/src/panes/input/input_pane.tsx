// Input: whether the program waits for batches, and how they are copied to the device.

import type { JSX } from "preact";
import type { Report } from "../../data/answers";
import type { Pane, PaneProps } from "../../page/pane";
import { Empty } from "../../parts/notes";
import { ReportView } from "../../parts/report/report_view";

// Without a loader and copies the report would be all zeros.
function noLoader(report: Report): JSX.Element | null {
  const loader = report.facts.find((fact) => fact.name === "loader")?.value;
  const copies = report.tables.find((table) => table.name === "transfers");
  if (loader !== "none" || (copies && copies.rows.length > 0)) return null;
  return (
    <Empty
      title="No DataLoader in this trace"
      notes={["Nothing here waited for a batch or copied one to the device: the data was already there, or the program uses another loader."]}
      how="To see the loader, iterate over it inside the recording:"
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
        emptyState={noLoader}
      />
    </div>
  );
}
