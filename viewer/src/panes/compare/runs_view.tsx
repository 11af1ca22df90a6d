// All runs in a table, one row for each file, model or batch size, and their figures as charts.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { Table } from "../../data/answers";
import type { SetClient } from "../../data/set_client";
import { useUrl } from "../../page/link";
import { cssColor } from "../../page/theme";
import { Answered, useAnswer } from "../../parts/answer";
import { axis, Chart, seriesVariable, withAlpha } from "../../parts/chart/chart";
import { Select } from "../../parts/fields";
import { Notes } from "../../parts/notes";
import { ReportTables } from "../../parts/report/report_view";
import { DescribedTable } from "../../parts/table/described_table";
import { formatByKind, formatNumber } from "../../text/format";
import { axisName, type Figure, type RunsPlot, runsPlot } from "./runs_plot";

const kCharPx = 6.2; // of an axis

const kBys = [
  ["file", "file"],
  ["model", "model"],
  ["batch", "batch size"],
] as const;

export function RunsView(props: { set: SetClient }): JSX.Element {
  const { set } = props;
  const [by, setBy] = useUrl("compare.by", set.list.compare?.by ?? "file");
  const answer = useAnswer((signal) => set.runs(by, signal), [set.source, by]);
  const tools = <Select label="A row for each" value={by} onChange={setBy} options={kBys} />;
  return (
    <Answered answer={answer}>
      {(report) => (
        <div class="stack">
          {report.tables[0] && (
            <>
              <section class="card">
                <DescribedTable id="compare.runs" table={report.tables[0]} place={null} tools={tools} />
              </section>
              <RunsCharts table={report.tables[0]} />
            </>
          )}
          <ReportTables id="compare" report={report} skip={["runs"]} />
          <Notes notes={report.notes} />
        </div>
      )}
    </Answered>
  );
}

function RunsCharts(props: { table: Table }): JSX.Element | null {
  const { table } = props;
  const [over, setOver] = useUrl("compare.over", "name");
  const plot = useMemo(() => runsPlot(table, over), [table, over]);
  const label = table.columns.find((column) => column.name === "name")?.label.toLowerCase() ?? "run";
  const hasBatch = runsPlot(table, "samples").numeric;
  if (table.rows.length < 2 || plot.figures.length === 0) return null;
  return (
    <section class="card" aria-labelledby="compare-plot">
      <div class="toolbar">
        <h2 class="table-title" id="compare-plot">
          Figures over {plot.numeric && over === "samples" ? "the batch size" : label}
        </h2>
        {hasBatch && label !== "batch" && (
          <Select
            label="Over"
            value={over}
            onChange={setOver}
            options={[
              ["name", label],
              ["samples", "batch size"],
            ]}
          />
        )}
      </div>
      <div class="pair">
        {plot.figures.map((figure, i) => (
          <FigureChart key={figure.column.name} plot={plot} figure={figure} color={seriesVariable(i)} />
        ))}
      </div>
    </section>
  );
}

// A line over values, bars over names.
function FigureChart(props: { plot: RunsPlot; figure: Figure; color: string }): JSX.Element {
  const { plot, figure } = props;
  const { column, values } = figure;
  const data = useMemo(() => [plot.x, values] as uPlot.AlignedData, [plot, values]);
  const text = (value: number | null) => formatByKind(column.kind, value);
  const options = () => {
    const color = cssColor(props.color);
    const names = (chart: uPlot, splits: number[]) => {
      const room = Math.floor(chart.bbox.width / devicePixelRatio / (plot.names.length + 0.2) / kCharPx) - 1;
      return splits.map((at) => (plot.numeric ? formatNumber(at) : Number.isInteger(at) ? axisName(plot.names, at, room) : ""));
    };
    return {
      scales: {
        x: { time: false, range: plot.numeric ? undefined : beside },
        y: { range: (_: uPlot, __: number, high: number): [number, number] => [0, Math.max(high * 1.08, 1e-9)] },
      },
      axes: [
        axis({ values: names, incrs: plot.numeric ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }),
        axis({ size: 80, values: (_: uPlot, splits: number[]) => splits.map(text) }),
      ],
      series: [
        {},
        {
          stroke: color,
          width: 2,
          spanGaps: true,
          fill: plot.numeric ? undefined : withAlpha(color, 0.7),
          paths: plot.numeric ? undefined : uPlot.paths.bars!({ size: [0.7, 60] }),
          points: { show: plot.numeric, size: 6, fill: color },
        },
      ],
      cursor: { drag: { x: false, y: false } },
    };
  };
  const spoken = plot.names.map((name, i) => `${name}: ${text(values[i])}`).slice(0, 20);
  return (
    <figure class="run-chart">
      <figcaption>{column.label}</figcaption>
      <Chart
        label={`${column.label}. ${spoken.join(", ")}`}
        height={200}
        data={data}
        options={options}
        deps={[plot, column.name]}
        tip={(index) => (
          <>
            <strong>{plot.names[index]}</strong>
            <div>
              {column.label}: {text(values[index])}
            </div>
          </>
        )}
      />
    </figure>
  );
}

// Room for half a bar at either end.
function beside(_: uPlot, low: number, high: number): [number, number] {
  return [Math.min(low, 0) - 0.6, high + 0.6];
}
