// Ranks x steps: a row for each rank, a column for each step, the color says how long, how late or how much memory.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HeatMap, HeatValue } from "../../data/job_answers";
import type { JobClient } from "../../data/job_client";
import { useUrl } from "../../page/link";
import { theme } from "../../page/theme";
import { Answered, useAnswer } from "../../parts/answer";
import { useBoxWidth } from "../../parts/box_width";
import { Select } from "../../parts/fields";
import { Tip } from "../../parts/tip";
import { formatBytes, formatDuration, formatNumber } from "../../text/format";
import { scaledContext } from "./canvas";
import { cellAt, cellText, cellValue, heatColor, heatScale, heatShare, kHeatTitles } from "./heat";

const kMostPx = 420;
const kRowPx = 16; // of a row, where there is room

export function HeatSection(props: {
  job: JobClient;
  values: readonly HeatValue[];
  onPick: (rank: number, step: number) => void;
}): JSX.Element {
  const [value, setValue] = useUrl("ranks.value", "step");
  const answer = useAnswer((signal) => props.job.heat(value, signal), [props.job, value]);
  return (
    <section class="card">
      <div class="toolbar">
        <h2>Ranks and steps</h2>
        <Select
          label="Show"
          value={value}
          options={props.values.map((each) => [each, kHeatTitles[each]] as const)}
          onChange={setValue}
        />
        {!props.values.includes("memory") && <span class="muted">no memory in these traces (profile_memory=True)</span>}
      </div>
      <Answered answer={answer}>
        {(map) =>
          map.cells.length === 0 ? (
            <p class="muted">The traces have no steps: call the profiler&apos;s step() after each iteration.</p>
          ) : (
            <HeatCanvas map={map} onPick={props.onPick} />
          )
        }
      </Answered>
    </section>
  );
}

function HeatCanvas(props: { map: HeatMap; onPick: (rank: number, step: number) => void }): JSX.Element {
  const { map } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useBoxWidth(canvas);
  const [hovered, setHovered] = useState<{ row: number; column: number; x: number; y: number } | null>(null);
  const height = Math.min(kMostPx, Math.max(24, map.ranks.length * kRowPx));
  const scale = useMemo(() => heatScale(map.cells), [map]);
  const shade = theme.value;
  const format = map.value === "memory" ? formatBytes : formatDuration;

  useEffect(() => {
    draw(canvas.current!, map, width, height);
  }, [map, width, height, shade]);

  const at = (event: MouseEvent) => cellAt(map, event.offsetX / width, event.offsetY / height);
  return (
    <>
      <div class="ranks-canvas-box">
        <canvas
          ref={canvas}
          class="ranks-heat"
          role="img"
          aria-label={`${kHeatTitles[map.value]} of ${map.rankCount} ranks in ${map.stepCount} steps, from ${format(scale.low)} to ${format(scale.high)}`}
          style={{ width: `${width}px`, height: `${height}px` }}
          onMouseMove={(event) => {
            const cell = at(event);
            setHovered(cell && { ...cell, x: event.offsetX, y: event.offsetY });
          }}
          onMouseLeave={() => setHovered(null)}
          onClick={(event) => {
            const cell = at(event);
            if (cell) props.onPick(map.ranks[cell.row], map.steps[cell.column]);
          }}
        />
        {hovered && (
          <Tip x={hovered.x} top={hovered.y + 14} width={width}>
            <strong>{cellText(map, hovered)}</strong>
            <div>{cellValue(map, hovered) < 0 ? "not recorded" : format(cellValue(map, hovered))}</div>
            <div class="muted">click: show it in the timeline</div>
          </Tip>
        )}
      </div>
      <div class="heat-legend">
        <span>{format(Math.max(0, scale.low))}</span>
        <span class="heat-ramp" style={{ background: ramp(shade) }} />
        <span>{format(scale.high)}</span>
        <span class="muted">
          {formatNumber(map.rankCount)} ranks down, {formatNumber(map.stepCount)} steps across
          {map.ranksARow > 1 || map.stepsAColumn > 1
            ? `; a cell is the largest of ${map.ranksARow} x ${map.stepsAColumn}`
            : ""}
        </span>
      </div>
    </>
  );
}

function ramp(shade: "light" | "dark"): string {
  const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => `rgb(${heatColor(share, shade).join(" ")}) ${share * 100}%`);
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

// Cells as pixels of an image that is then stretched: a million cells cost one call.
function draw(canvas: HTMLCanvasElement, map: HeatMap, width: number, height: number): void {
  const ctx = scaledContext(canvas, width, height);
  const scale = heatScale(map.cells);
  const small = document.createElement("canvas");
  small.width = map.steps.length;
  small.height = map.ranks.length;
  const context = small.getContext("2d")!;
  const image = context.createImageData(small.width, small.height);
  map.cells.forEach((value, i) => {
    if (value < 0) return; // transparent: the card shows through
    const [r, g, b] = heatColor(heatShare(value, scale), theme.value);
    image.data.set([r, g, b, 255], i * 4);
  });
  context.putImageData(image, 0, 0);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(small, 0, 0, width, height);
}
