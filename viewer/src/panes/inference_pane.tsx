// Inference: time to the first token, time per token, and each pass through the model.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { openInTimeline } from "../app/actions";
import { Answered } from "../app/answer";
import type { PaneProps } from "../app/pane";
import { cssColor } from "../app/theme";
import type { Table } from "../data/types";
import { formatDuration } from "../format";
import { axis, Chart, Legend } from "./chart/chart";
import { Empty, Facts, Notes } from "./notes";
import { ReportTables, useReport } from "./report_pane";

export function InferencePane(props: PaneProps): JSX.Element {
  const { answer, askAll } = useReport(props.trace, "inference");
  return (
    <div class="page">
      <h1>Inference</h1>
      <Answered answer={answer}>
        {(report) => {
          const passes = report.tables.find((table) => table.name === "passes");
          if (!passes || passes.rows.length === 0) {
            return (
              <Empty
                title="No text generation in this trace"
                notes={[
                  "This pane is for programs that generate tokens: one prefill, then one decode pass a token.",
                  ...report.notes,
                ]}
                code="with profile(...): model.generate(...)"
              />
            );
          }
          return (
            <div class="pile">
              <Facts facts={report.facts} />
              <section class="card">
                <h2>Passes</h2>
                <PassChart table={passes} />
              </section>
              <Notes notes={report.notes} />
              <ReportTables id="inference" report={report} tables={{ passes: { linkColumn: "pass" } }} onAllRows={askAll} />
            </div>
          );
        }}
      </Answered>
    </div>
  );
}

// Each pass as a bar, the device's part of it in colour.
function PassChart(props: { table: Table }): JSX.Element {
  const { columns, rows } = props.table;
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const [pass, start, duration, busy] = [at("pass"), at("start_ns"), at("duration_ns"), at("device_busy_ns")];
  const data = useMemo(
    () =>
      [rows.map((_, i) => i), rows.map((row) => row[duration]), rows.map((row) => row[busy])] as uPlot.AlignedData,
    [rows],
  );
  const options = () => {
    const bars = uPlot.paths.bars!({ size: [0.8, 40] });
    return {
      scales: {
        x: { time: false, range: [-0.6, rows.length - 0.4] as [number, number] },
        y: { range: (_: uPlot, _low: number, high: number): [number, number] => [0, high * 1.05] },
      },
      axes: [
        axis({ grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }),
        axis({ size: 64, values: (_: uPlot, splits: number[]) => splits.map((ns) => formatDuration(ns)) }),
      ],
      series: [
        {},
        { paths: bars, fill: cssColor("--c1"), width: 0, points: { show: false } },
        { paths: bars, fill: cssColor("--c3"), width: 0, points: { show: false } },
      ],
      cursor: { points: { show: false }, y: false, drag: { x: false, y: false } },
    };
  };
  return (
    <>
      <Chart
        label={`Duration of ${rows.length} passes, with the time the device was busy`}
        height={180}
        data={data}
        options={options}
        deps={[]}
        onClick={(index) =>
          openInTimeline({ startNs: Number(rows[index][start]), durationNs: Number(rows[index][duration]) })
        }
        tip={(index) => (
          <>
            <strong>
              {index}: {String(rows[index][pass])}
            </strong>
            <div>{formatDuration(Number(rows[index][duration]))}</div>
            <div>device busy {formatDuration(Number(rows[index][busy]))}</div>
          </>
        )}
      />
      <Legend
        items={[
          { name: "the device waits", variable: "--c1" },
          { name: "the device works", variable: "--c3" },
        ]}
      />
    </>
  );
}
