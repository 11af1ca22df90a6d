// Operators: torch's key_averages() as a table, grouped by input shape on request.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Report, Table } from "../../data/answers";
import { useUrl } from "../../page/link";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered } from "../../parts/answer";
import { Checkbox, Select } from "../../parts/fields";
import { Facts, Notes } from "../../parts/notes";
import { useReport } from "../../parts/report/report_view";
import { StepsLabel } from "../../parts/steps/steps_label";
import { DescribedTable } from "../../parts/table/described_table";

const kSides = [
  ["host", "operators"],
  ["device", "device work"],
  ["both", "both, as in torch"],
] as const;

// In torch's table, but rarely what one looks for.
const kHidden = [
  "device_type",
  "is_user_annotation",
  "is_async",
  "is_top_level",
  "cpu_total_percent",
  "flops",
  "self_flops",
  "cpu_memory_usage_bytes",
  "device_memory_usage_bytes",
];
const kNameFirst = ["name", "input_shapes", "count"];
const kDeviceFirst = [...kNameFirst, "self_device_time_total_ns", "self_device_percent", "device_time_total_ns"];
const kHostFacts = ["self_cpu_time_total_ns", "overhead_time_ns"];
const kFacts = ["self_cpu_time_total_ns", "self_device_time_total_ns", "unattributed_device_time_ns", "overhead_time_ns"];

export const opsPane: Pane = { id: "ops", title: "Operators", component: OpsPane };

function OpsPane(props: PaneProps): JSX.Element {
  const [shapes, setShapes] = useUrl("ops.shapes");
  const [side, setSide] = useUrl("ops.side", "host");
  const { answer, loadAll } = useReport(props.trace, "ops", shapes ? { group_by_input_shape: true } : {});
  const whole = answer.value?.tables[0];
  const table = useMemo(() => whole && ofSide(whole, side), [whole, side]);
  const onDevice = answer.value !== null && hasDeviceTime(answer.value);
  return (
    <div class="page">
      <h1 class="sr-only">Operators</h1>
      <p class="intro">
        Time of every PyTorch operator, by itself and including what it calls. Click a name to see its longest call in the timeline. <StepsLabel />
      </p>
      <Answered answer={answer}>
        {(report) => table && (
          <div class="stack">
            <Facts facts={report.facts} only={onDevice ? kFacts : kHostFacts} />
            <section class="card">
              <DescribedTable
                id="ops"
                table={table}
                defaultSort={defaultSort(report)}
                hidden={onDevice ? kHidden : [...kHidden, ...deviceColumns(table)]}
                first={defaultSort(report).startsWith("-self_device") ? kDeviceFirst : kNameFirst}
                maxHeight="calc(100vh - 236px)"
                onAllRows={loadAll}
                empty="This trace has no operators: record with activities=[ProfilerActivity.CPU, ...]."
                tools={
                  <>
                    <Select label="show" value={side} onChange={setSide} options={kSides} />
                    <Checkbox label="group by input shape" value={shapes !== ""} onChange={(on) => setShapes(on ? "1" : "")} />
                  </>
                }
              />
            </section>
            <Notes notes={shapes ? [...report.notes, ...shapesNote(report)] : report.notes} />
          </div>
        )}
      </Answered>
    </div>
  );
}

// Torch lists operators and device work in separate rows.
function ofSide(table: Table, side: string): Table {
  const at = table.columns.findIndex((column) => column.name === "device_type");
  if (side === "both" || at < 0) return table;
  const rows = table.rows.filter((row) => (row[at] === "cpu") === (side === "host"));
  return { ...table, rows, rowCount: table.rowCount > table.rows.length ? table.rowCount : rows.length };
}

function hasDeviceTime(report: Report): boolean {
  const device = report.facts.find((fact) => fact.name === "self_device_time_total_ns")?.value;
  return typeof device === "number" && device > 0;
}

// All zero where the program ran on the CPU.
function deviceColumns(table: Table): string[] {
  return table.columns.map((column) => column.name).filter((name) => name.includes("device"));
}

// By device time where there is any.
function defaultSort(report: Report): string {
  return hasDeviceTime(report) ? "-self_device_time_total_ns" : "-self_cpu_time_total_ns";
}

function shapesNote(report: Report): string[] {
  const table = report.tables[0];
  const at = table.columns.findIndex((column) => column.name === "input_shapes");
  const known = at >= 0 && table.rows.some((row) => row[at] !== null && row[at] !== "" && row[at] !== "[]");
  return known ? [] : ["No shapes in this trace: record with record_shapes=True to group by them."];
}
