// A plot of two numeric columns of a result.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { Table } from "../../data/answers";
import { useUrl } from "../../page/link";
import { cssColor } from "../../page/theme";
import { axis, Chart, withAlpha } from "../../parts/chart/chart";
import { Select } from "../../parts/fields";
import { formatByKind } from "../../text/format";
import { numericColumns, plotData } from "./plot";

const kPlotTypes = [
  ["", "none"],
  ["line", "line"],
  ["points", "points"],
  ["bars", "bars"],
] as const;

const kRowSteps = Array.from({ length: 18 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

export function ResultPlot(props: { table: Table }): JSX.Element | null {
  const { table } = props;
  const names = useMemo(() => numericColumns(table), [table]);
  const columns = names.map((name) => [name, name] as const);
  const [form, setForm] = useUrl("sql.plot", "");
  const [x, setX] = useUrl("sql.x", "");
  const [chosenY, setY] = useUrl("sql.y", "");
  const y = names.includes(chosenY) ? chosenY : names[names.length - 1];
  const safeX = names.includes(x) ? x : "";
  const data = useMemo(() => {
    const points = plotData(table, safeX, y);
    return [points.x, points.y] as uPlot.AlignedData;
  }, [table, safeX, y]);
  const kindOf = (name: string) => table.columns.find((column) => column.name === name)?.kind ?? "number";
  const text = table.columns.findIndex((column) => column.kind === "text");
  if (names.length === 0 || table.rows.length < 2) return null;
  const options = () => {
    const color = cssColor("--c1");
    const paths = form === "bars" ? uPlot.paths.bars!({ size: [0.8, 40] }) : form === "points" ? () => null : undefined;
    return {
      scales: { x: { time: false, range: form === "bars" ? withMargin : undefined } },
      axes: [
        axis({ label: safeX || "row", labelSize: 18, values: labels(kindOf(safeX)), incrs: safeX ? undefined : kRowSteps }),
        axis({ label: y, labelSize: 18, size: 80, values: labels(kindOf(y)) }),
      ],
      series: [
        {},
        {
          stroke: color,
          fill: form === "bars" ? withAlpha(color, 0.7) : undefined,
          width: 1.5,
          paths,
          points: { show: form === "points", size: 5, fill: color },
        },
      ],
      cursor: { drag: { x: false, y: false } },
    };
  };
  return (
    <div class="plot">
      <div class="toolbar">
        <Select label="Plot" value={form} onChange={setForm} options={kPlotTypes} />
        {form !== "" && (
          <>
            <Select label="of" value={y} onChange={setY} options={columns} />
            <Select label="over" value={safeX} onChange={setX} options={[["", "row"], ...columns]} />
          </>
        )}
      </div>
      {form !== "" && (
        <Chart
          label={`${y} over ${safeX || "row"}, ${data[0].length} points`}
          height={260}
          data={data}
          options={options}
          deps={[form, safeX, y]}
          tip={(index) => (
            <>
              {safeX === "" && text >= 0 && <strong>{formatByKind("text", table.rows[data[0][index]]?.[text])}</strong>}
              <div>
                {safeX || "row"}: {formatByKind(kindOf(safeX), data[0][index])}
              </div>
              <div>
                {y}: {formatByKind(kindOf(y), data[1][index])}
              </div>
            </>
          )}
        />
      )}
    </div>
  );
}

function labels(kind: string) {
  return (_: uPlot, splits: number[]): string[] => splits.map((value) => formatByKind(kind, value));
}

// Room for half a bar at either end.
function withMargin(plot: uPlot, low: number, high: number): [number, number] {
  const bar = (high - low) / Math.max(1, plot.data[0].length - 1) || 1;
  return [low - bar * 0.6, high + bar * 0.6];
}
