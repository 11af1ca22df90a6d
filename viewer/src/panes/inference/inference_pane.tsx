// Inference: time to first token, time per output token, and every forward pass.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { Table } from "../../data/answers";
import { openInTimeline } from "../../page/navigation";
import type { Pane, PaneProps } from "../../page/pane";
import { cssColor } from "../../page/theme";
import { Answered } from "../../parts/answer";
import { scaleTop } from "../../parts/chart/bar_scale";
import { axis, Chart, labelClippedBars, Legend } from "../../parts/chart/chart";
import { Empty, Facts, Notes } from "../../parts/notes";
import { ReportTables, useReport } from "../../parts/report/report_view";
import { formatDuration } from "../../text/format";

export const inferencePane: Pane = { id: "inference", title: "Inference", component: InferencePane };

function InferencePane(props: PaneProps): JSX.Element {
  const { answer, loadAll } = useReport(props.trace, "inference");
  return (
    <div class="page">
      <h1 class="sr-only">Inference</h1>
      <p class="intro">Text generation: time to first token, time per output token, and every forward pass.</p>
      <Answered answer={answer}>
        {(report) => {
          const passes = report.tables.find((table) => table.name === "passes");
          if (!passes || passes.rows.length === 0) {
            return (
              <Empty
                title="No text generation in this trace"
                notes={report.notes}
                code={"with profile(...):\n    model.generate(...)"}
              />
            );
          }
          return (
            <div class="stack">
              <Facts facts={report.facts} />
              <section class="card">
                <h2>Forward passes</h2>
                <PassChart table={passes} />
              </section>
              <Notes notes={report.notes} />
              <ReportTables id="inference" report={report} tables={{ passes: { linkColumn: "pass" } }} onAllRows={loadAll} />
            </div>
          );
        }}
      </Answered>
    </div>
  );
}

// A bar per pass, with the time the device was busy.
function PassChart(props: { table: Table }): JSX.Element {
  const { columns, rows } = props.table;
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const [pass, start, duration, busy] = [at("pass"), at("start_ns"), at("duration_ns"), at("device_busy_ns")];
  const bars = rows.map((row) => ({ durationNs: Number(row[duration]), warmup: row[pass] === "prefill" }));
  const onDevice = rows.some((row) => Number(row[busy]) > 0);
  const data = useMemo(
    () =>
      [rows.map((_, i) => i), rows.map((row) => row[duration]), rows.map((row) => row[busy])] as uPlot.AlignedData,
    [rows],
  );
  const options = () => {
    const paths = uPlot.paths.bars!({ size: [0.8, 40] });
    const topNs = scaleTop(bars);
    return {
      scales: {
        x: { time: false, range: [-0.6, rows.length - 0.4] as [number, number] },
        y: { range: [0, topNs] as [number, number] },
      },
      axes: [
        axis({
          grid: { show: false },
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
          values: (_: uPlot, splits: number[]) => splits.map((at) => (bars[at]?.warmup ? "prefill" : String(at))),
        }),
        axis({ size: 64, values: (_: uPlot, splits: number[]) => splits.map((ns) => formatDuration(ns)) }),
      ],
      series: [
        {},
        { paths, fill: cssColor("--c1"), width: 0, points: { show: false } },
        { paths, fill: cssColor("--c3"), width: 0, points: { show: false } },
      ],
      hooks: { draw: [(plot: uPlot) => labelClippedBars(plot, bars, topNs)] },
      cursor: { points: { show: false }, y: false, drag: { x: false, y: false } },
    };
  };
  return (
    <>
      <Chart
        label={`Duration of ${rows.length} forward passes, with device busy time`}
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
            {onDevice && <div>device busy {formatDuration(Number(rows[index][busy]))}</div>}
          </>
        )}
      />
      {onDevice && (
        <Legend
          items={[
            { name: "device idle", variable: "--c1" },
            { name: "device busy", variable: "--c3" },
          ]}
        />
      )}
    </>
  );
}
