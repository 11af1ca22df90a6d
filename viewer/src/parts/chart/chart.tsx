// uPlot as a component: follows the theme and the width, reports the pointer, and has a text alternative.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { cssColor, theme } from "../../page/theme";
import { formatDuration } from "../../text/format";
import { Tip } from "../tip";
import type { Bar } from "./bar_scale";
import "./chart.css";

export type ChartOptions = Omit<uPlot.Options, "width" | "height">;

export interface ChartProps {
  label: string; // for screen readers
  height: number;
  data: uPlot.AlignedData;
  options: () => ChartOptions; // called again when the theme changes
  deps: readonly unknown[]; // of `options`: a change creates the chart again
  draw?: (plot: uPlot) => void; // marks on top of the chart
  drawDeps?: readonly unknown[]; // of `draw`: a change only draws again
  onClick?: (index: number, x: number) => void;
  tip?: (index: number) => ComponentChildren;
}

interface Pointer {
  index: number;
  left: number;
  width: number;
}

export function Chart(props: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [pointer, setPointer] = useState<Pointer | null>(null);
  const shade = theme.value;

  useEffect(() => {
    const element = box.current!;
    const options: uPlot.Options = {
      ...latest.current.options(),
      width: Math.max(120, element.clientWidth),
      height: latest.current.height,
    };
    options.legend = { show: false };
    options.hooks = {
      ...options.hooks,
      draw: [...(options.hooks?.draw ?? []), (plot) => latest.current.draw?.(plot)],
      setCursor: [
        ...(options.hooks?.setCursor ?? []),
        (plot) => {
          const { idx, left } = plot.cursor;
          const inside = idx !== null && idx !== undefined && left !== undefined && left >= 0;
          const offset = plot.over.offsetLeft;
          setPointer(inside ? { index: idx, left: left + offset, width: plot.width } : null);
        },
      ],
    };
    const plot = (chart.current = new uPlot(options, latest.current.data, element));
    // At the click, not where the pointer last moved: the chart may have been created since.
    const onClick = (event: MouseEvent) => {
      plot.setCursor({ left: event.offsetX, top: event.offsetY });
      const { idx, left } = plot.cursor;
      if (idx !== null && idx !== undefined && left !== undefined && left >= 0) {
        latest.current.onClick?.(idx, plot.posToVal(left, "x"));
      }
    };
    plot.over.addEventListener("click", onClick);
    const observer = new ResizeObserver(() => {
      plot.setSize({ width: Math.max(120, element.clientWidth), height: latest.current.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
      setPointer(null);
    };
  }, [props.data, props.height, shade, ...props.deps]);
  useEffect(() => chart.current?.redraw(false), props.drawDeps ?? []);

  const tip = pointer && props.tip ? props.tip(pointer.index) : null;
  return (
    <div class={`chart${props.onClick ? " clickable" : ""}`}>
      <div ref={box} role="img" aria-label={props.label} style={{ minHeight: `${props.height}px` }} />
      {tip && pointer && (
        <Tip x={pointer.left} top={8} width={pointer.width} gap={12}>
          {tip}
        </Tip>
      )}
    </div>
  );
}

// An axis in the theme's colors.
export function axis(options: uPlot.Axis = {}): uPlot.Axis {
  const grid = cssColor("--border");
  return {
    stroke: cssColor("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1, size: 4 },
    size: 30,
    ...options,
  };
}

// Text that is readable on any background; `y` is its baseline.
export function boxedText(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  const width = ctx.measureText(text).width + 6 * devicePixelRatio;
  const pad = 3 * devicePixelRatio;
  const left = ctx.textAlign === "center" ? x - width / 2 : ctx.textAlign === "left" ? x - pad : x - width + pad;
  ctx.fillStyle = cssColor("--surface");
  ctx.fillRect(left, y - 10 * devicePixelRatio, width, 13 * devicePixelRatio);
  ctx.fillStyle = cssColor("--muted");
  ctx.fillText(text, x, y);
}

// Writes the durations of bars that are clipped at the top.
export function labelClippedBars(plot: uPlot, bars: readonly Bar[], topNs: number): void {
  const { ctx } = plot;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  bars.forEach((bar, at) => {
    if (bar.durationNs <= topNs) return;
    const text = `↑ ${formatDuration(bar.durationNs)}`;
    boxedText(ctx, text, plot.valToPos(at, "x", true), plot.bbox.top + 14 * devicePixelRatio);
  });
  ctx.restore();
}

// The CSS variable of the color for series `at`.
export function seriesVariable(at: number): string {
  return `--c${(at % 8) + 1}`;
}

export function withAlpha(color: string, alpha: number): string {
  const hex = /^#([0-9a-f]{6})$/i.exec(color);
  if (!hex) return color;
  return `#${hex[1]}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0")}`;
}

export interface LegendItem {
  name: string;
  variable: string;
  value?: string;
  dashed?: boolean; // a line, not an area
}

export function Legend(props: { items: LegendItem[] }): JSX.Element {
  return (
    <ul class="legend">
      {props.items.map((item) => (
        <li key={item.name}>
          <span
            class={`swatch${item.dashed ? " dashed" : ""}`}
            style={item.dashed ? { borderColor: `var(${item.variable})` } : { background: `var(${item.variable})` }}
            aria-hidden="true"
          />
          {item.name}
          {item.value !== undefined && <span class="muted"> {item.value}</span>}
        </li>
      ))}
    </ul>
  );
}
