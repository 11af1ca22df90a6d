// Collectives of a window, those that cost the most waiting first, and of the chosen one when each rank arrived.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Arrivals, Collective, JobLayout } from "../../data/job_answers";
import type { AxisWindow, JobClient } from "../../data/job_client";
import { useUrl } from "../../page/link";
import { cssColor, theme } from "../../page/theme";
import { Answered, useAnswer } from "../../parts/answer";
import { useBoxWidth } from "../../parts/box_width";
import { Select } from "../../parts/fields";
import { formatBytes, formatDuration, formatNumber } from "../../text/format";
import { scaledContext } from "./canvas";
import { kLaneColors } from "./draw_lanes";

const kMostBarsPx = 400;

export function CollectivesSection(props: {
  job: JobClient;
  layout: JobLayout;
  window: AxisWindow;
  selected: number;
  onSelect: (id: number, window?: AxisWindow) => void;
  onOpen: (rank: number, traceNs: number, durationNs: number) => void;
}): JSX.Element {
  const { job, window, selected } = props;
  const [order, setOrder] = useUrl("ranks.order", "wait");
  const list = useAnswer(
    (signal) => job.collectives(window, order, signal),
    [job, order, Math.round(window.fromNs), Math.round(window.toNs)],
  );
  return (
    <section class="card" aria-label="Collectives">
      <div class="toolbar">
        <h2>Collectives in this window</h2>
        {!job.source.stored && (
          <Select
            label="Order"
            value={order}
            options={[
              ["wait", "most waiting first"],
              ["time", "by time"],
            ]}
            onChange={setOrder}
          />
        )}
      </div>
      {selected >= 0 && <ChosenCollective {...props} id={selected} />}
      <Answered answer={list}>
        {({ total, collectives }) =>
          total === 0 ? (
            <p class="muted">No collective was matched between ranks here.</p>
          ) : (
            <>
              <CollectiveTable {...props} collectives={collectives} />
              {total > collectives.length && (
                <p class="muted">
                  {formatNumber(collectives.length)} of {formatNumber(total)} collectives; zoom in to see the others.
                </p>
              )}
            </>
          )
        }
      </Answered>
    </section>
  );
}

function around(each: Collective): AxisWindow {
  const span = Math.max(1000, each.endNs - each.startNs);
  return { fromNs: each.startNs - span, toNs: each.endNs + span };
}

function CollectiveTable(props: {
  layout: JobLayout;
  collectives: readonly Collective[];
  selected: number;
  onSelect: (id: number, window?: AxisWindow) => void;
}): JSX.Element {
  return (
    <div class="collective-list">
      <table class="collective-table">
        <thead>
          <tr>
            <th>Collective</th>
            <th>Group</th>
            <th class="number">Ranks</th>
            <th class="number">Size</th>
            <th class="number">At</th>
            <th class="number">All ranks waited</th>
            <th class="number">Transfer</th>
            <th class="number">Waited for</th>
          </tr>
        </thead>
        <tbody>
          {props.collectives.map((each) => (
            <tr key={each.id} class={each.id === props.selected ? "chosen" : ""}>
              <td>
                <button class="link" onClick={() => props.onSelect(each.id, around(each))}>
                  {each.op}
                </button>
              </td>
              <td>{each.kind}</td>
              <td class="number">{each.ranks}</td>
              <td class="number">{each.bytes > 0 ? formatBytes(each.bytes) : "–"}</td>
              <td class="number">{formatDuration(each.lastArrivalNs - props.layout.fromNs)}</td>
              <td class="number">{formatDuration(each.waitNs)}</td>
              <td class="number">{formatDuration(each.endNs - each.lastArrivalNs)}</td>
              <td class="number">rank {each.fromRank}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ChosenCollective(props: {
  job: JobClient;
  layout: JobLayout;
  id: number;
  onOpen: (rank: number, traceNs: number, durationNs: number) => void;
}): JSX.Element {
  const answer = useAnswer((signal) => props.job.arrivals(props.id, signal), [props.job, props.id]);
  return (
    <Answered answer={answer}>
      {(found) => <ArrivalBars found={found} layout={props.layout} stored={props.job.source.stored} onOpen={props.onOpen} />}
    </Answered>
  );
}

// A bar for each rank: from its arrival it waits for the last one, then data moves.
function ArrivalBars(props: {
  found: Arrivals;
  layout: JobLayout;
  stored: boolean;
  onOpen: (rank: number, traceNs: number, durationNs: number) => void;
}): JSX.Element {
  const { found } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useBoxWidth(canvas);
  const shade = theme.value;
  const rows = useMemo(() => [...found.arrivals].sort((a, b) => a[0] - b[0]), [found]);
  const rowPx = Math.max(1, Math.min(14, kMostBarsPx / rows.length));
  const height = Math.ceil(rows.length * rowPx);
  const last = rows.find(([rank]) => rank === found.fromRank) ?? rows[rows.length - 1];
  const trace = props.layout.ranks.find(([rank]) => rank === last[0])?.[2] ?? -1;

  useEffect(() => {
    drawArrivals(canvas.current!, found, rows, { width, height, rowPx });
  }, [found, rows, width, height, shade]);

  return (
    <div class="arrivals">
      <p>
        <strong>{found.op}</strong> of {found.ranks} ranks ({found.kind}
        {found.bytes > 0 && `, ${formatBytes(found.bytes)}`}): all but the last waited {formatDuration(found.waitNs)} in
        total for rank {found.fromRank}; then data moved for {formatDuration(found.endNs - found.lastArrivalNs)}.{" "}
        {trace >= 0 && !props.stored && (
          <button class="link" onClick={() => props.onOpen(last[0], last[3], last[2] - last[1])}>
            Open rank {last[0]} at its arrival
          </button>
        )}
      </p>
      <div class="ranks-canvas-box arrivals-box">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Arrivals of ${rows.length} ranks: the first ${formatDuration(found.lastArrivalNs - found.startNs)} before rank ${found.fromRank}`}
          style={{ width: `${width}px`, height: `${height}px` }}
        />
      </div>
    </div>
  );
}

function drawArrivals(
  canvas: HTMLCanvasElement,
  found: Arrivals,
  rows: Arrivals["arrivals"],
  box: { width: number; height: number; rowPx: number },
): void {
  const ctx = scaledContext(canvas, box.width, box.height);
  const labels = box.rowPx >= 11 ? 62 : 0;
  const endNs = Math.max(...rows.map((row) => row[2]));
  const x = (ns: number) => labels + ((ns - found.startNs) / Math.max(1, endNs - found.startNs)) * (box.width - labels);
  rows.forEach(([rank, startNs, end], i) => {
    const top = i * box.rowPx;
    const tall = Math.max(1, box.rowPx - (box.rowPx > 3 ? 2 : 0));
    const moves = Math.min(end, Math.max(startNs, found.lastArrivalNs));
    ctx.fillStyle = cssColor(kLaneColors.wait);
    ctx.fillRect(x(startNs), top, Math.max(0, x(moves) - x(startNs)), tall);
    ctx.fillStyle = cssColor(kLaneColors.move);
    ctx.fillRect(x(moves), top, Math.max(1, x(end) - x(moves)), tall);
    if (labels === 0) return;
    ctx.fillStyle = cssColor(rank === found.fromRank ? "--bad" : "--muted");
    ctx.fillText(`rank ${rank}`, 0, top + box.rowPx / 2);
  });
}
