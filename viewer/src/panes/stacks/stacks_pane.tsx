// Flame graphs of Python stacks or operators: in order of time, merged, or inverted.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Flame, Lane, Lanes } from "../../data/answers";
import type { Params } from "../../data/source";
import { useUrl } from "../../page/link";
import { openInTimeline } from "../../page/navigation";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";
import { type Frame, layoutFlame, searchFlame } from "../../parts/flame/flame";
import { FlameCanvas } from "../../parts/flame/flame_canvas";
import { useFlame } from "../../parts/flame/use_flame";
import { Empty } from "../../parts/notes";
import { StepsLabel } from "../../parts/steps/steps_label";
import { formatDuration, formatNumber, formatShare } from "../../text/format";

const kBins = 2000;

const kOrders: [string, string, string][] = [
  ["left-heavy", "Left-heavy", "Identical stacks merged, widest first"],
  ["time", "Time-ordered", "Calls in order of time, on one thread"],
  ["inverted", "Inverted", "Starts with the functions where time was spent, callers below"],
];

const kNothing: Record<string, string> = { stack: "No Python stacks here", op: "No operators here", sample: "No samples here" };
const kHowToRecord: Record<string, string> = { stack: "profile(with_stack=True)", sample: "firelane record --sample -- python train.py" };

export const stacksPane: Pane = { id: "stacks", title: "Stacks", component: StacksPane };

function StacksPane(props: PaneProps): JSX.Element {
  const lanes = useAnswer((signal) => props.trace.lanes(signal), [props.trace]);
  return (
    <div class="page">
      <h1 class="sr-only">Stacks</h1>
      <p class="intro">
        Where time goes, by call stack: the wider a frame, the more time. Below a frame is what it calls or, inverted, what calls it. <StepsLabel />
      </p>
      <Answered answer={lanes}>{(value) => <Stacks trace={props.trace} lanes={value} />}</Answered>
    </div>
  );
}

function Stacks(props: PaneProps & { lanes: Lanes }): JSX.Element {
  const sampled = props.lanes.sampled ?? [];
  const [by, setBy] = useUrl("stacks.by", "stack");
  const isSampled = by === "sample" && sampled.length > 0;
  const running = props.lanes.lanes.filter((lane) => lane.kind === "thread" && lane.slices > 0);
  const threads: readonly { id: number; name: string }[] = isSampled ? sampled : running;
  const [wantedOrder, setOrder] = useUrl("stacks.order", "left-heavy");
  const order = isSampled && wantedOrder === "time" ? "left-heavy" : wantedOrder; // what is between samples is not known
  const [wantedLane, setLane] = useUrl("stacks.lane", String(busiest(running)?.id ?? ""));
  const isThere = threads.some((each) => String(each.id) === wantedLane);
  const lane = isThere || threads.length === 0 ? wantedLane : String(threads[0].id);
  const [step, setStep] = useUrl("stacks.step");
  const [search, setSearch] = useUrl("stacks.search");

  const window = props.lanes.steps.find((each) => String(each.number) === step);
  const params: Params = {
    order,
    lane: lane === "" ? null : Number(lane),
    from_ns: window ? window.startNs : null,
    to_ns: window ? window.startNs + window.durationNs : null,
    by,
    bins: kBins,
  };
  const answer = useAnswer((signal) => props.trace.flame(params, signal), [props.trace, JSON.stringify(params)]);
  if (threads.length === 0) {
    return <Empty title="No threads in this trace" notes={["A flame graph needs operators or Python functions."]} />;
  }
  return (
    <section class="card">
      <div class="toolbar">
        <span class="segmented" role="group" aria-label="Order">
          {kOrders.map(([id, title, hint]) => (
            <button
              key={id}
              class="button"
              aria-pressed={order === id}
              disabled={isSampled && id === "time"}
              title={hint}
              onClick={() => setOrder(id)}
            >
              {title}
            </button>
          ))}
        </span>
        <span class="segmented" role="group" aria-label="Frames">
          <button class="button" aria-pressed={by === "stack"} onClick={() => setBy("stack")}>
            Python stacks
          </button>
          <button class="button" aria-pressed={by === "op"} onClick={() => setBy("op")}>
            Operators
          </button>
          <button
            class="button"
            aria-pressed={by === "sample"}
            disabled={sampled.length === 0 && by !== "sample"}
            title="Python stacks that were sampled meanwhile: firelane record --sample"
            onClick={() => setBy("sample")}
          >
            Samples
          </button>
        </span>
        <select class="field" aria-label="Thread" value={lane} onChange={(event) => setLane(event.currentTarget.value)}>
          {threads.map((each) => (
            <option key={each.id} value={String(each.id)}>
              {each.name}
            </option>
          ))}
        </select>
        {props.lanes.steps.length > 0 && (
          <select class="field" aria-label="Step" value={step} onChange={(event) => setStep(event.currentTarget.value)}>
            <option value="">whole trace</option>
            {props.lanes.steps.slice(0, 1000).map((each) => (
              <option key={each.number} value={String(each.number)}>
                step {each.number}
              </option>
            ))}
          </select>
        )}
        <input
          class="field filter"
          type="search"
          placeholder="Search frames"
          aria-label="Search frames"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      <Answered answer={answer}>{(flame) => <FlameGraph flame={flame} search={search} by={by} setBy={setBy} />}</Answered>
    </section>
  );
}

function busiest(lanes: readonly Lane[]): Lane | undefined {
  return [...lanes].sort((a, b) => b.slices - a.slices)[0];
}

function FlameGraph(props: {
  flame: Flame;
  search: string;
  by: string;
  setBy: (by: string) => void;
}): JSX.Element {
  const { flame } = props;
  const layout = useMemo(() => layoutFlame(flame.nodes), [flame]);
  const { view, setView, selected, setSelected, zoomed, zoomOut } = useFlame(layout);
  const found = useMemo(() => searchFlame(layout, props.search), [layout, props.search]);
  if (layout.frameCount === 0) {
    return (
      <Empty
        title={kNothing[props.by] ?? kNothing.op}
        notes={[flame.note || "This thread has none in this range.", "Choose another thread, or show operators instead."]}
        code={kHowToRecord[props.by]}
      />
    );
  }
  return (
    <>
      <p class="muted flame-status" role="status">
        {props.search !== "" ? (
          <>
            {formatNumber(found.frames)} frames match: {formatDuration(found.totalNs)} (
            {formatShare(found.totalNs / Math.max(1, flame.totalNs))})
          </>
        ) : selected ? (
          <SelectedFrame frame={selected} totalNs={flame.totalNs} isSample={props.by === "sample" && flame.note === ""} />
        ) : (
          <>
            {formatDuration(flame.totalNs)} in {formatNumber(layout.frameCount)} frames. Click a frame to zoom in.
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
        totalNs={Math.max(1, flame.totalNs)}
        search={props.search}
        selected={selected}
        onView={setView}
        onSelect={setSelected}
      />
    </>
  );
}

// Sampled frames are not in the timeline.
function SelectedFrame(props: { frame: Frame; totalNs: number; isSample: boolean }): JSX.Element {
  const { frame, isSample } = props;
  return (
    <>
      <strong>{frame.name}</strong> {formatDuration(frame.widthNs)} (
      {formatShare(frame.widthNs / Math.max(1, props.totalNs))}), self {formatDuration(frame.selfNs)},{" "}
      {formatNumber(frame.count)} {isSample ? "samples" : "calls"}.{" "}
      {!isSample && (
        <button class="link" onClick={() => openInTimeline({ name: frame.name })}>
          Show in the timeline
        </button>
      )}
    </>
  );
}
