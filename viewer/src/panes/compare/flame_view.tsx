// The differential flame graph: where time is on both sides, colored by how it changed.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { FlameDifference } from "../../data/answers";
import type { SetClient, Sides } from "../../data/set_client";
import { useUrl } from "../../page/link";
import { Answered, useAnswer } from "../../parts/answer";
import { searchFlame } from "../../parts/flame/flame";
import { FlameCanvas } from "../../parts/flame/flame_canvas";
import { useFlame } from "../../parts/flame/use_flame";
import { formatChange, formatDuration, formatNumber, formatShare } from "../../text/format";
import { changeColor, changeOf, type DifferenceFrame, layoutDifference } from "./flame_layout";

const kBins = 1000;

const kBys: [string, string, string][] = [
  ["device", "Kernels", "Time of kernels and copies by module, operator and kernel; of operators where there is no device"],
  ["op", "Operators", "Time of threads by operators and what they call"],
  ["stack", "Python stacks", "Time of threads by Python functions"],
];

export function DifferenceFlame(props: { set: SetClient; sides: Sides }): JSX.Element {
  const { set, sides } = props;
  const [by, setBy] = useUrl("compare.flame", "device");
  const [search, setSearch] = useUrl("compare.search");
  const answer = useAnswer(
    (signal) => set.compareFlame(sides, by, kBins, signal),
    [set.source, JSON.stringify(sides), by],
  );
  return (
    <section class="card" aria-labelledby="compare-flame">
      <div class="toolbar">
        <h2 class="table-title" id="compare-flame">
          By place, per step
        </h2>
        <span class="segmented" role="group" aria-label="Frames">
          {kBys.map(([id, title, hint]) => (
            <button key={id} class="button" aria-pressed={by === id} title={hint} onClick={() => setBy(id)}>
              {title}
            </button>
          ))}
        </span>
        <input
          class="field filter"
          type="search"
          placeholder="Search frames"
          aria-label="Search frames"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span class="change-scale muted" aria-hidden="true">
          faster <span class="change-colors" /> slower
        </span>
      </div>
      <Answered answer={answer}>{(flame) => <Graph flame={flame} search={search} />}</Answered>
    </section>
  );
}

function Graph(props: { flame: FlameDifference; search: string }): JSX.Element {
  const { flame, search } = props;
  const layout = useMemo(() => layoutDifference(flame.nodes), [flame]);
  const { view, setView, selected, setSelected, zoomed, zoomOut } = useFlame(layout);
  const found = useMemo(() => searchFlame(layout, search), [layout, search]);
  if (layout.frameCount === 0) return <p class="muted">Neither side has any. {flame.note}</p>;
  return (
    <>
      <p class="muted flame-status" role="status">
        {search !== "" ? (
          <>{formatNumber(found.frames)} frames match.</>
        ) : selected ? (
          <>
            <strong>{selected.name}</strong> {frameText(selected)}
          </>
        ) : (
          <>
            {formatDuration(flame.beforeNs)} before, {formatDuration(flame.afterNs)} after:{" "}
            {formatChange(flame.afterNs - flame.beforeNs)}. As wide as the average of both sides; click a frame to zoom in.
          </>
        )}{" "}
        {zoomed && (
          <button class="link" onClick={zoomOut}>
            Zoom out
          </button>
        )}
      </p>
      {flame.note && <p class="muted">{flame.note}</p>}
      <FlameCanvas
        layout={layout}
        view={view}
        totalNs={Math.max(1, layout.toNs - layout.fromNs)}
        search={search}
        selected={selected}
        onView={setView}
        onSelect={setSelected}
        color={(frame, theme) => `rgb(${changeColor(changeOf(frame), theme).join(" ")})`}
        describe={frameText}
      />
    </>
  );
}

function frameText(frame: DifferenceFrame): string {
  const { beforeNs, afterNs } = frame;
  if (beforeNs === 0) return `new: ${formatDuration(afterNs)} a step`;
  if (afterNs === 0) return `gone: ${formatDuration(beforeNs)} a step`;
  const share = formatShare(Math.abs(afterNs / beforeNs - 1));
  const how = afterNs > beforeNs ? `, ${share} slower` : afterNs < beforeNs ? `, ${share} faster` : "";
  return `${formatDuration(beforeNs)} before, ${formatDuration(afterNs)} after: ${formatChange(afterNs - beforeNs)}${how}`;
}
