// Roofline: each operator by arithmetic intensity and TFLOP/s, below the limits of memory bandwidth and compute. Log-log.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { Report } from "../../data/answers";
import { openInTimeline } from "../../page/navigation";
import { cssColor } from "../../page/theme";
import { axis, boxedText, Chart, Legend, seriesVariable, withAlpha } from "../../parts/chart/chart";
import { formatDuration, formatNumber, formatPercent } from "../../text/format";
import { type Roof, roofAt, roofLabels, roofPoints, roofsOf, usedRoofs } from "./roofline";

const kLabelPx = 16;

export function RooflineChart(props: { report: Report }): JSX.Element {
  const points = useMemo(
    () => roofPoints(props.report).sort((a, b) => a.flopsPerByte - b.flopsPerByte),
    [props.report],
  );
  const roofs = useMemo(() => roofsOf(props.report), [props.report]);
  const shownRoofs = useMemo(() => usedRoofs(roofs, points), [roofs, points]);
  const classes = useMemo(() => [...new Set(points.map((point) => point.kernelClass))].sort(), [points]);
  const data = useMemo(
    () => [points.map((point) => point.flopsPerByte), points.map((point) => point.tflops)] as uPlot.AlignedData,
    [points],
  );
  if (points.length === 0) {
    return <p class="muted">No operators with known FLOPs and bytes: record with record_shapes=True for a roofline.</p>;
  }
  const most = Math.max(...points.map((point) => point.deviceNs));
  const radius = (deviceNs: number) => 3 + 9 * Math.sqrt(deviceNs / most);

  const draw = (plot: uPlot) => {
    const { ctx } = plot;
    const scale = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    const [low, high] = [plot.scales.x.min!, plot.scales.x.max!];
    if (roofs.bandwidthGbS) {
      for (const roof of shownRoofs) {
        ctx.strokeStyle = cssColor("--muted");
        ctx.lineWidth = scale;
        ctx.beginPath();
        const ridge = (roof.value * 1000) / roofs.bandwidthGbS;
        for (const x of [low, Math.min(Math.max(ridge, low), high), high]) {
          const y = roofAt(x, roofs.bandwidthGbS, roof.value);
          ctx.lineTo(plot.valToPos(x, "x", true), plot.valToPos(y, "y", true));
        }
        ctx.stroke();
      }
    }
    for (const point of points) {
      const color = cssColor(seriesVariable(classes.indexOf(point.kernelClass)));
      ctx.fillStyle = withAlpha(color, 0.7);
      ctx.strokeStyle = color;
      ctx.lineWidth = scale;
      ctx.beginPath();
      const x = plot.valToPos(point.flopsPerByte, "x", true);
      ctx.arc(x, plot.valToPos(point.tflops, "y", true), radius(point.deviceNs) * scale, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
    }
    if (roofs.bandwidthGbS) labelRoofs(plot, shownRoofs, roofs.bandwidthGbS);
    ctx.restore();
  };

  const ys = points.map((point) => point.tflops);
  const xs = points.map((point) => point.flopsPerByte);
  const top = Math.max(...ys, ...shownRoofs.map((roof) => roof.value));
  const options = () => ({
    scales: {
      x: { time: false, distr: 3 as const, range: [Math.min(...xs) / 3, Math.max(...xs, 1000) * 3] as [number, number] },
      y: { distr: 3 as const, range: [Math.min(...ys) / 3, top * 3] as [number, number] },
    },
    axes: [
      axis({ label: "FLOPs per byte", labelSize: 18, splits: powersOfTen, values: numbers }),
      axis({ label: "TFLOP/s", labelSize: 18, size: 56, splits: powersOfTen, values: numbers }),
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    cursor: { points: { show: false }, drag: { x: false, y: false }, dataIdx: nearest(points) },
    hooks: { draw: [draw] },
  });
  return (
    <div>
      <Chart
        label={`Roofline of ${points.length} ops; ${classes.join(", ")}`}
        height={320}
        data={data}
        options={options}
        deps={[roofs]}
        onClick={(index) => openInTimeline({ name: points[index].op })}
        tip={(index) => (
          <>
            <strong>{points[index].op}</strong> {points[index].kernelClass}
            <div>
              {formatNumber(points[index].tflops)} TFLOP/s at {formatNumber(points[index].flopsPerByte)} FLOP/B
            </div>
            <div>
              {formatDuration(points[index].deviceNs)} on the device
              {points[index].roofPercent !== null && `, ${formatPercent(points[index].roofPercent)} of its limit`}
            </div>
          </>
        )}
      />
      <Legend items={classes.map((name, at) => ({ name, variable: seriesVariable(at) }))} />
      <p class="muted hint">
        Larger circles took more time. The further below the line, the more room for improvement. Below the slope an operator is
        bound by memory bandwidth, below the flat part by compute.
      </p>
    </div>
  );
}

function labelRoofs(plot: uPlot, roofs: readonly Roof[], bandwidthGbS: number): void {
  const scale = devicePixelRatio;
  const right = plot.bbox.left + plot.bbox.width - 6 * scale;
  const ys = roofs.map((roof) => plot.valToPos(roofAt(plot.scales.x.max!, bandwidthGbS, roof.value), "y", true));
  plot.ctx.textAlign = "right";
  for (const { y, names } of roofLabels(ys, kLabelPx * scale)) {
    const text = names.map((at) => `${roofs[at].name} ${formatNumber(roofs[at].value)}`).join("; ");
    boxedText(plot.ctx, `${text} TFLOP/s`, right, y + 11 * scale);
  }
}

function powersOfTen(_: uPlot, _axis: number, low: number, high: number): number[] {
  const out: number[] = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); ++power) out.push(10 ** power);
  return out;
}

// uPlot passes null for ticks that are too close together.
function numbers(_: uPlot, splits: (number | null)[]): string[] {
  return splits.map((value) => (value === null ? "" : value < 0.001 ? value.toExponential(0) : formatNumber(value)));
}

// The point closest to the pointer in x and y (uPlot only looks along x).
function nearest(points: readonly { flopsPerByte: number; tflops: number }[]) {
  return (plot: uPlot, series: number, index: number): number => {
    if (series !== 0 && series !== 1) return index;
    const { left = 0, top = 0 } = plot.cursor;
    let best = index;
    let least = Infinity;
    points.forEach((point, at) => {
      const dx = plot.valToPos(point.flopsPerByte, "x") - left;
      const dy = plot.valToPos(point.tflops, "y") - top;
      const distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = at;
      }
    });
    return best;
  };
}
