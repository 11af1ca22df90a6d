// Allocated memory over time, stacked by category where the trace has them, and what the allocator reserved.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { MemoryCurve } from "../../data/answers";
import { cssColor } from "../../page/theme";
import { formatBytes, formatTime } from "../../text/format";
import { axis, boxedText, Chart, Legend, withAlpha } from "../chart/chart";
import { stackSeries } from "../chart/stack";
import { categoryVariable, type Peak, peakOf, shownCategories } from "./curve";

const kByteSteps = Array.from({ length: 44 }, (_, power) => 2 ** power);
const kAllocated = "--c1";

// Time and bytes.
export function memoryAxes(): uPlot.Axis[] {
  return [
    axis({ values: (_: uPlot, at: number[]) => at.map((ns) => formatTime(ns, at.length > 1 ? at[1] - at[0] : 1)) }),
    axis({ size: 72, incrs: kByteSteps, values: (_: uPlot, at: number[]) => at.map((bytes) => formatBytes(bytes)) }),
  ];
}

export function MemoryChart(props: {
  curve: MemoryCurve;
  height?: number;
  peak?: Peak | null; // taken from the curve if not given
  atNs?: number | null; // marked by a line
  onClick?: (atNs: number) => void;
}): JSX.Element {
  const { curve } = props;
  const names = useMemo(() => shownCategories(curve), [curve]);
  const peak = useMemo(() => props.peak ?? peakOf(curve), [curve, props.peak?.atNs]);
  const hasReserved = curve.reservedBytes.some((value) => (value ?? 0) > 0);

  const data = useMemo(() => {
    const times = curve.allocatedBytes.map((_, at) => curve.fromNs + (at + 0.5) * curve.binNs);
    const layers = names.length > 0 ? stackSeries(names.map((name) => curve.categories[name])).reverse() : [];
    const reserved = hasReserved ? [curve.reservedBytes] : [];
    return [times, ...reserved, ...(layers.length > 0 ? layers : [curve.allocatedBytes])] as uPlot.AlignedData;
  }, [curve, names]);

  const options = () => {
    const steps = uPlot.paths.stepped!({ align: 1 });
    const layerNames = names.length > 0 ? [...names].reverse() : ["allocated"];
    const layers = layerNames.map((name) => {
      const color = cssColor(names.length > 0 ? categoryVariable(name) : kAllocated);
      const fill = names.length > 0 ? color : withAlpha(color, 0.35);
      return { paths: steps, stroke: color, width: 1, fill, points: { show: false } };
    });
    const reserved = { paths: steps, stroke: cssColor("--muted"), width: 1, dash: [4, 3], points: { show: false } };
    const range: [number, number] = [curve.fromNs, curve.fromNs + curve.allocatedBytes.length * curve.binNs];
    return {
      scales: {
        x: { time: false, range },
        y: { range: (_: uPlot, _low: number, high: number): [number, number] => [0, high > 0 ? high * 1.06 : 1] },
      },
      axes: memoryAxes(),
      series: [{}, ...(hasReserved ? [reserved] : []), ...layers],
      cursor: { points: { show: false }, y: false, drag: { x: false, y: false } },
    };
  };

  return (
    <div>
      <Chart
        label={`Memory of ${curve.device} over time; peak ${formatBytes(peak?.bytes)}`}
        height={props.height ?? 170}
        data={data}
        options={options}
        deps={[names]}
        draw={(plot) => drawMarks(plot, peak, props.atNs ?? null)}
        drawDeps={[props.atNs, peak?.atNs]}
        onClick={props.onClick && ((_, x) => props.onClick!(x))}
        tip={(index) => <CurveTip curve={curve} names={names} index={index} />}
      />
      <Legend
        items={[
          ...(names.length > 0
            ? names.map((name) => ({ name, variable: categoryVariable(name) }))
            : [{ name: "allocated", variable: kAllocated }]),
          ...(hasReserved ? [{ name: "reserved by the allocator", variable: "--muted", dashed: true }] : []),
        ]}
      />
    </div>
  );
}

export function drawMarks(plot: uPlot, peak: Peak | null, atNs: number | null): void {
  const { ctx } = plot;
  const { top, height, left, width } = plot.bbox;
  const scale = devicePixelRatio;
  ctx.save();
  if (atNs !== null) {
    const x = plot.valToPos(atNs, "x", true);
    ctx.strokeStyle = cssColor("--accent");
    ctx.lineWidth = 2 * scale;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
  }
  if (peak) {
    const x = plot.valToPos(peak.atNs, "x", true);
    const y = plot.valToPos(peak.bytes, "y", true);
    ctx.fillStyle = cssColor("--bad");
    ctx.beginPath();
    ctx.arc(x, y, 4 * scale, 0, 2 * Math.PI);
    ctx.fill();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    const atRight = x > left + width - 120 * scale;
    ctx.textAlign = atRight ? "right" : "left";
    boxedText(ctx, `peak ${formatBytes(peak.bytes)}`, x + (atRight ? -10 : 10) * scale, Math.max(y - 6 * scale, top + 12 * scale));
  }
  ctx.restore();
}

function CurveTip(props: { curve: MemoryCurve; names: string[]; index: number }): JSX.Element {
  const { curve, names, index } = props;
  return (
    <>
      <strong>{formatBytes(curve.allocatedBytes[index])}</strong> at{" "}
      {formatTime(curve.fromNs + index * curve.binNs, Math.max(1, curve.binNs))}
      {names.map((name) =>
        (curve.categories[name][index] ?? 0) > 0 ? (
          <div key={name}>
            <span class="swatch" style={{ background: `var(${categoryVariable(name)})` }} /> {name}{" "}
            {formatBytes(curve.categories[name][index])}
          </div>
        ) : null,
      )}
      {curve.reservedBytes[index] !== null && curve.reservedBytes[index] !== undefined && (
        <div>reserved {formatBytes(curve.reservedBytes[index])}</div>
      )}
    </>
  );
}
