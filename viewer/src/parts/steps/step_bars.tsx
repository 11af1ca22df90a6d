// A bar per step, stacked by where its time went. A click opens the step in the timeline, or calls `onStep`.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { Overview, StepRow } from "../../data/answers";
import { openInTimeline } from "../../page/navigation";
import { cssColor } from "../../page/theme";
import { formatDuration, formatShare } from "../../text/format";
import { scaleTop } from "../chart/bar_scale";
import { axis, Chart, labelClippedBars, Legend } from "../chart/chart";
import { largestParts, stackSeries } from "../chart/stack";
import { causeColors } from "./causes";

const kMaxParts = 6;
const kMinShare = 0.01;
const kFewSteps = 8; // few enough to write "step 3" instead of "3"

export function StepBars(props: {
  steps: Overview["steps"];
  height?: number;
  onStep?: (step: StepRow) => void;
}): JSX.Element {
  const { steps } = props;
  const parts = useMemo(
    () => largestParts(steps.parts, steps.rows.map((row) => row.partsNs), { maxParts: kMaxParts, minShare: kMinShare }),
    [steps],
  );
  const colors = useMemo(() => causeColors(parts.names), [parts]);
  // Drawn from the tallest sum down, each over the one before. Steps without parts (warm-up) stay gray.
  const data = useMemo(() => {
    const own = parts.names.map((_, at) => parts.rows.map((row) => row[at]));
    const whole = steps.rows.map((row) => row.durationNs);
    const stacked = stackSeries(own).reverse();
    return [steps.rows.map((_, at) => at), whole, ...stacked] as uPlot.AlignedData;
  }, [steps, parts]);

  const options = () => {
    const bars = uPlot.paths.bars!({ size: [0.8, 64], align: 0 });
    const drawn = [...colors].reverse().map((variable) => cssColor(variable));
    const many = steps.rows.length > kFewSteps;
    const topNs = scaleTop(steps.rows);
    return {
      scales: { x: { time: false, range: [-0.6, steps.rows.length - 0.4] as [number, number] }, y: { range: [0, topNs] as [number, number] } },
      axes: [
        axis({
          grid: { show: false },
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
          values: (_: uPlot, splits: number[]) =>
            splits.map((at) => (steps.rows[at] ? `${many ? "" : "step "}${steps.rows[at].step}` : "")),
        }),
        axis({ size: 64, values: (_: uPlot, splits: number[]) => splits.map((ns) => formatDuration(ns)) }),
      ],
      series: [
        {},
        { paths: bars, fill: cssColor("--raised"), stroke: cssColor("--border"), width: 1, points: { show: false } },
        ...drawn.map((color) => ({ paths: bars, fill: color, width: 0, points: { show: false } })),
      ],
      cursor: { points: { show: false }, y: false, drag: { x: false, y: false } },
      hooks: { draw: [(plot: uPlot) => labelClippedBars(plot, steps.rows, topNs)] },
    };
  };

  const open = (step: StepRow) =>
    openInTimeline({ step: step.step, startNs: step.startNs, durationNs: step.durationNs, steps: steps.recordedSteps });
  const labelOf = (name: string) => steps.labels[steps.parts.indexOf(name)] ?? "the rest";
  const totals = parts.names.map((_, at) => parts.rows.reduce((sum, row) => sum + row[at], 0));
  const whole = totals.reduce((sum, total) => sum + total, 0);
  return (
    <div>
      <Chart
        label={`Duration of ${steps.rows.length} steps, stacked by cause: ${parts.names
          .map((name, at) => `${labelOf(name)} ${formatShare(totals[at] / whole)}`)
          .join(", ")}`}
        height={props.height ?? 190}
        data={data}
        options={options}
        deps={[parts]}
        onClick={(index) => (props.onStep ?? open)(steps.rows[index])}
        tip={(index) => (
          <StepTip row={steps.rows[index]} names={parts.names} labelOf={labelOf} colors={colors} partsNs={parts.rows[index]} />
        )}
      />
      <Legend
        items={[
          ...parts.names.map((name, at) => ({
            name: labelOf(name),
            variable: colors[at],
            value: formatShare(totals[at] / whole),
          })),
          ...(steps.rows.some((row) => row.warmup) ? [{ name: "warm-up, not analyzed", variable: "--raised" }] : []),
        ]}
      />
    </div>
  );
}

function StepTip(props: {
  row: StepRow;
  names: string[];
  labelOf: (name: string) => string;
  colors: string[];
  partsNs: number[];
}): JSX.Element {
  const { row } = props;
  return (
    <>
      <strong>
        Step {row.step}: {formatDuration(row.durationNs)}
      </strong>
      {row.warmup && <div>warm-up, not analyzed</div>}
      {props.names.map((name, at) =>
        props.partsNs[at] > 0 ? (
          <div key={name}>
            <span class="swatch" style={{ background: `var(${props.colors[at]})` }} /> {props.labelOf(name)}{" "}
            {formatDuration(props.partsNs[at])}
          </div>
        ) : null,
      )}
    </>
  );
}
