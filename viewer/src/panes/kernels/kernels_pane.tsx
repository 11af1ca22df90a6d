// Kernels, memcpys and memsets: what ran on the device, and how close it came to the hardware's limits.

import type { JSX } from "preact";
import { useUrl } from "../../page/link";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";
import { Select } from "../../parts/fields";
import { Facts, NoDevice, Notes } from "../../parts/notes";
import { useReport } from "../../parts/report/report_view";
import { StepsLabel } from "../../parts/steps/steps_label";
import { DescribedTable } from "../../parts/table/described_table";
import { RooflineChart } from "./roofline_chart";

const kGroups = [
  ["", "name"],
  ["op", "name and operator"],
  ["stream", "name and stream"],
] as const;

// The most wanted columns first: time, occupancy, bandwidth. Launch configuration follows.
const kFirst = [
  "name",
  "op",
  "stream",
  "calls",
  "total_ns",
  "share_percent",
  "kind",
  "mean_ns",
  "occupancy_percent",
  "occupancy_limit",
  "bytes",
  "bandwidth_gb_s",
];

export const kernelsPane: Pane = { id: "kernels", title: "Kernels", component: KernelsPane };

function KernelsPane(props: PaneProps): JSX.Element {
  const [group, setGroup] = useUrl("kernels.group");
  const params = group === "op" ? { group_by_op: true } : group === "stream" ? { by_stream: true } : {};
  const { answer, loadAll } = useReport(props.trace, "kernels", params);
  return (
    <div class="page">
      <h1 class="sr-only">Kernels</h1>
      <p class="intro">
        What ran on the GPU, by name: kernels, memcpys and memsets. Below: how close operators came to the hardware limits. <StepsLabel />
      </p>
      <Answered answer={answer}>
        {(report) =>
          report.tables[0].rowCount === 0 ? (
            <NoDevice notes={report.notes} />
          ) : (
            <div class="stack">
              <Facts facts={report.facts} only={["calls", "work_ns", "busy_ns"]} />
              <section class="card">
                <DescribedTable
                  id="kernels"
                  table={report.tables[0]}
                  defaultSort="-total_ns"
                  hidden={["graph_calls", "op_count"]}
                  first={kFirst}
                  maxHeight="520px"
                  onAllRows={loadAll}
                  tools={
                    <Select label="group by" value={group} onChange={setGroup} options={kGroups} />
                  }
                />
              </section>
              <Notes notes={report.notes} />
              <Roofline {...props} />
            </div>
          )
        }
      </Answered>
    </div>
  );
}

function Roofline(props: PaneProps): JSX.Element {
  const answer = useAnswer((signal) => props.trace.report("roofline", {}, signal), [props.trace]);
  return (
    <Answered answer={answer}>
      {(report) => {
        const ops = report.tables.find((table) => table.columns.some((column) => column.name === "roof_percent"));
        return (
          <div class="stack">
            <section class="card">
              <h2>Roofline</h2>
              <RooflineChart report={report} />
              <Facts facts={report.facts} />
            </section>
            {ops && ops.rows.length > 0 && (
              <section class="card">
                <DescribedTable
                  id="roofline"
                  table={ops}
                  defaultSort="-device_ns"
                  hidden={["flops", "bytes", "aligned"]}
                  maxHeight="420px"
                />
              </section>
            )}
            <Notes notes={report.notes} />
          </div>
        );
      }}
    </Answered>
  );
}
