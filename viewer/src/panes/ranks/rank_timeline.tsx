// Chosen ranks on one time axis, their clocks corrected: what they wait for, and the critical path across them.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobLayout, JobTimeline } from "../../data/job_answers";
import type { AxisWindow, JobClient } from "../../data/job_client";
import { useUrl } from "../../page/link";
import { theme } from "../../page/theme";
import { Answered, useAnswer } from "../../parts/answer";
import { useBoxWidth } from "../../parts/box_width";
import { Legend } from "../../parts/chart/chart";
import { Checkbox } from "../../parts/fields";
import { Tip } from "../../parts/tip";
import { formatDuration } from "../../text/format";
import { drawLanes, kLaneColors } from "./draw_lanes";
import {
  clampWindow,
  fetchedWindow,
  findAt,
  type Found,
  formatRanks,
  inTrace,
  kLanePx,
  kRulerPx,
  parseRanks,
  ranksOnPath,
  zoomWindow,
} from "./lanes";

const kBins = 1200;
const kMostOnPath = 12;

export interface RankTimelineProps {
  job: JobClient;
  layout: JobLayout;
  window: AxisWindow;
  onWindow: (window: AxisWindow) => void;
  selected: number;
  onSelect: (id: number) => void;
  onOpen: (rank: number, traceNs: number, durationNs: number) => void; // the rank's own trace
}

export function RankTimeline(props: RankTimelineProps): JSX.Element {
  const { job, layout } = props;
  const stored = job.source.stored;
  const known = useMemo(() => new Set(layout.ranks.map(([rank]) => rank)), [layout]);
  const [text, setText] = useUrl("ranks.shown", formatRanks(layout.firstRanks));
  const [path, setPath] = useUrl("ranks.path", "1");
  const [arrows, setArrows] = useUrl("ranks.arrows", "1");
  const ranks = parseRanks(text, known);
  const whole = { fromNs: layout.fromNs, toNs: layout.toNs };
  const fetched = stored ? whole : fetchedWindow(props.window, whole);
  const answer = useAnswer(
    (signal) => job.timeline(ranks, fetched, kBins, signal),
    [job, ranks.join(), fetched.fromNs, fetched.toNs],
  );
  return (
    <section class="card" aria-label="Timeline of ranks">
      <div class="toolbar">
        <h2>Timeline</h2>
        {!stored && (
          <label class="check">
            Ranks{" "}
            <input
              class="field"
              value={text}
              aria-label="Ranks to show, such as 0,3,8-11"
              onChange={(event) => setText(event.currentTarget.value.trim())}
            />
          </label>
        )}
        {!stored && answer.value && answer.value.path.length > 0 && (
          <button class="button" onClick={() => setText(formatRanks(ranksOnPath(answer.value!.path, kMostOnPath)))}>
            Ranks on the critical path
          </button>
        )}
        <Checkbox label="Critical path" value={path === "1"} onChange={(on) => setPath(on ? "1" : "0")} />
        <Checkbox label="Arrows" value={arrows === "1"} onChange={(on) => setArrows(on ? "1" : "0")} />
        <button class="button" onClick={() => props.onWindow(whole)}>
          Whole job
        </button>
      </div>
      <Answered answer={answer}>
        {(timeline) =>
          timeline.lanes.length === 0 ? (
            <p class="muted">None of these ranks was found. Type ranks like 0,3,8-11.</p>
          ) : (
            <Lanes {...props} timeline={timeline} showPath={path === "1"} showArrows={arrows === "1"} />
          )
        }
      </Answered>
      <Legend
        items={[
          { name: "work", variable: kLaneColors.work },
          { name: "waiting for another rank", variable: kLaneColors.wait },
          { name: "moving data", variable: kLaneColors.move },
          { name: "not matched", variable: kLaneColors.unknown },
          { name: "critical path", variable: kLaneColors.path },
        ]}
      />
    </section>
  );
}

interface LanesProps extends RankTimelineProps {
  timeline: JobTimeline;
  showPath: boolean;
  showArrows: boolean;
}

function Lanes(props: LanesProps): JSX.Element {
  const { timeline, layout, window } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useBoxWidth(canvas);
  const height = kRulerPx + timeline.lanes.length * kLanePx;
  const [hovered, setHovered] = useState<(Found & { x: number; y: number }) | null>(null);
  const drag = useRef<{ x: number; window: AxisWindow; moved: boolean } | null>(null);
  const whole = { fromNs: layout.fromNs, toNs: layout.toNs };
  const pixelNs = (window.toNs - window.fromNs) / width;
  const shade = theme.value;

  useEffect(() => {
    const { selected, showPath, showArrows } = props;
    drawLanes(canvas.current!, { timeline, layout, window, width, height, selected, showPath, showArrows });
  }, [timeline, layout, window.fromNs, window.toNs, width, height, props.selected, props.showPath, props.showArrows, shade]);

  // Not passive: Ctrl and wheel zoom the timeline, not the page.
  useEffect(() => {
    const element = canvas.current!;
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey) {
        const atNs = window.fromNs + event.offsetX * pixelNs;
        props.onWindow(zoomWindow(window, atNs, event.deltaY > 0 ? 1.25 : 0.8, whole));
      } else if (event.shiftKey) {
        pan((event.deltaY || event.deltaX) * pixelNs);
      } else return;
      event.preventDefault();
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  const pan = (byNs: number, from = window) =>
    props.onWindow(clampWindow({ fromNs: from.fromNs + byNs, toNs: from.toNs + byNs }, whole));

  const onKeyDown = (event: KeyboardEvent) => {
    const span = window.toNs - window.fromNs;
    const middle = hovered?.atNs ?? window.fromNs + span / 2;
    const go: Record<string, () => void> = {
      w: () => props.onWindow(zoomWindow(window, middle, 0.7, whole)),
      s: () => props.onWindow(zoomWindow(window, middle, 1.4, whole)),
      a: () => pan(-span / 5),
      d: () => pan(span / 5),
      ArrowLeft: () => pan(-span / 5),
      ArrowRight: () => pan(span / 5),
      f: () => props.onWindow(whole),
      Escape: () => props.onSelect(-1),
    };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!(key in go) || event.ctrlKey || event.metaKey || event.altKey) return;
    go[key]();
    event.preventDefault();
  };

  const find = (event: MouseEvent) => findAt(timeline, window, width, event.offsetX, event.offsetY);
  return (
    <div class="rank-lanes">
      <div class="rank-names" style={{ paddingTop: `${kRulerPx}px` }}>
        {timeline.lanes.map((lane) => (
          <div key={lane.rank} class="rank-name" style={{ height: `${kLanePx}px` }}>
            <RankButton {...props} rank={lane.rank} />
          </div>
        ))}
      </div>
      <div class="ranks-canvas-box">
        <canvas
          ref={canvas}
          class="rank-lanes-canvas"
          tabIndex={0}
          role="application"
          aria-label={`Timeline of ${timeline.lanes.length} ranks. W and S zoom, A and D pan, F shows the whole job.`}
          style={{ width: `${width}px`, height: `${height}px` }}
          onPointerDown={(event) => {
            drag.current = { x: event.offsetX, window, moved: false };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            const held = drag.current;
            if (held && (held.moved || Math.abs(event.offsetX - held.x) > 3)) {
              held.moved = true;
              setHovered(null);
              pan((held.x - event.offsetX) * pixelNs, held.window);
              return;
            }
            const found = find(event);
            setHovered(found && { ...found, x: event.offsetX, y: event.offsetY });
          }}
          onPointerUp={(event) => {
            const moved = drag.current?.moved;
            drag.current = null;
            if (!moved) props.onSelect(find(event)?.piece?.[3] ?? -1);
          }}
          onPointerCancel={() => (drag.current = null)}
          onPointerLeave={() => setHovered(null)}
          onDblClick={(event) => {
            const found = find(event);
            if (!found) return;
            const lane = timeline.lanes[found.lane];
            props.onOpen(lane.rank, inTrace(lane, timeline, found.atNs), (window.toNs - window.fromNs) / 10);
          }}
          onKeyDown={onKeyDown}
        />
        {hovered && (
          <Tip x={hovered.x} top={hovered.y + 14} width={width}>
            <Hovered timeline={timeline} layout={layout} found={hovered} />
          </Tip>
        )}
      </div>
    </div>
  );
}

function RankButton(props: LanesProps & { rank: number }): JSX.Element {
  const { timeline, layout, window, rank } = props;
  const lane = timeline.lanes.find((each) => each.rank === rank)!;
  const [, host, trace] = layout.ranks.find((each) => each[0] === rank)!;
  const name = layout.hosts[host];
  const label = `rank ${rank}`;
  if (trace < 0 || props.job.source.stored) return <span title={name}>{label}</span>;
  return (
    <button
      class="link"
      title={`Open the trace of rank ${rank}${name && ` (${name})`} at this window`}
      onClick={() => props.onOpen(rank, inTrace(lane, timeline, window.fromNs), window.toNs - window.fromNs)}
    >
      {label}
    </button>
  );
}

function Hovered(props: { timeline: JobTimeline; layout: JobLayout; found: Found }): JSX.Element {
  const { timeline, layout, found } = props;
  const lane = timeline.lanes[found.lane];
  if (!found.piece) {
    return (
      <>
        <strong>rank {lane.rank}</strong>
        <div>{lane.bins.length > 0 ? "zoom in to see collectives" : "its own work"}</div>
      </>
    );
  }
  const [start, moves, end, id, op, group] = found.piece;
  const kind = layout.groups.find((each) => each.id === group)?.kind;
  return (
    <>
      <strong>
        rank {lane.rank}: {timeline.ops[op]}
        {kind && `, ${kind}`}
      </strong>
      {id < 0 ? (
        <div>{formatDuration(end - start)}, not matched: waiting and transfer cannot be separated</div>
      ) : (
        <div>
          waits {formatDuration(moves - start)}, moves data for {formatDuration(end - moves)}
        </div>
      )}
    </>
  );
}
