// Memory that the caching allocator holds but nothing uses, in total and in one block: what it can hand out without the driver.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { MemoryCurve } from "../../data/answers";
import { cssColor } from "../../page/theme";
import { Chart, Legend, withAlpha } from "../../parts/chart/chart";
import { drawMarks, memoryAxes } from "../../parts/memory/memory_chart";
import { formatBytes, formatTime } from "../../text/format";

const kFree = "--c8";
const kLargest = "--c3";

export function FreeChart(props: {
  curve: MemoryCurve & { freeBytes: (number | null)[]; largestFreeBytes: (number | null)[] };
  atNs: number | null; // marked by a line
  onClick: (atNs: number) => void;
}): JSX.Element {
  const { curve } = props;
  const data = useMemo(() => {
    const times = curve.freeBytes.map((_, at) => curve.fromNs + (at + 0.5) * curve.binNs);
    return [times, curve.freeBytes, curve.largestFreeBytes] as uPlot.AlignedData;
  }, [curve.freeBytes, curve.largestFreeBytes]);
  const options = () => {
    const paths = uPlot.paths.stepped!({ align: 1 });
    const series = (variable: string, fill: number) => {
      const color = cssColor(variable);
      return { paths, stroke: color, width: 1.5, fill: withAlpha(color, fill), points: { show: false } };
    };
    return {
      scales: {
        x: { time: false, range: [curve.fromNs, curve.fromNs + curve.freeBytes.length * curve.binNs] as [number, number] },
        y: { range: (_: uPlot, _low: number, high: number): [number, number] => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: memoryAxes(),
      series: [{}, series(kFree, 0.3), series(kLargest, 0.35)],
      cursor: { points: { show: false }, y: false, drag: { x: false, y: false } },
    };
  };
  return (
    <div>
      <h3 class="chart-title">Free memory held by the allocator</h3>
      <Chart
        label={`Reserved but free memory of ${curve.device}, and its largest block, over time`}
        height={130}
        data={data}
        options={options}
        deps={[]}
        draw={(plot) => drawMarks(plot, null, props.atNs)}
        drawDeps={[props.atNs]}
        onClick={(_, x) => props.onClick(x)}
        tip={(index) => (
          <>
            <strong>{formatBytes(curve.freeBytes[index])} free</strong> at{" "}
            {formatTime(curve.fromNs + index * curve.binNs, Math.max(1, curve.binNs))}
            <div>largest block {formatBytes(curve.largestFreeBytes[index])}</div>
          </>
        )}
      />
      <Legend
        items={[
          { name: "free in total", variable: kFree },
          { name: "largest free block", variable: kLargest },
        ]}
      />
      <p class="muted hint">
        An allocation larger than the largest free block needs new memory from the driver, however much is free in total. The
        further apart the curves, the worse the fragmentation.
      </p>
    </div>
  );
}
