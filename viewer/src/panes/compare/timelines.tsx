// Two timelines, one above the other, aligned by step: the same distance from the start of a step is at the same place. Moving
// one moves the other.

import { effect, untracked } from "@preact/signals";
import type { JSX } from "preact";
import { type MutableRef, useEffect, useMemo, useRef } from "preact/hooks";
import type { FoundSlice, Lanes, StepMark } from "../../data/answers";
import { TraceClient } from "../../data/client";
import type { SetClient, Sides } from "../../data/set_client";
import { setUrl, useUrl } from "../../page/link";
import { Answered, useAnswer } from "../../parts/answer";
import { Select } from "../../parts/fields";
import { dependsOn } from "../../parts/timeline/depends_on";
import { LanesView } from "../../parts/timeline/lanes_view";
import { laneKey } from "../../parts/timeline/layout";
import { TimelineModel } from "../../parts/timeline/model";
import { formatDuration } from "../../text/format";
import { type Aligned, firstPair, followedView, pairView } from "./align";
import "./timelines.css";

const kMostSteps = 1000; // in a list

interface Side {
  trace: TraceClient;
  lanes: Lanes;
}

// The first run of each side.
export function Timelines(props: { set: SetClient; sides: Sides }): JSX.Element {
  const { set } = props;
  const ids = [props.sides.before[0], props.sides.after[0]];
  const answer = useAnswer(
    (signal) =>
      Promise.all(
        ids.map(async (id): Promise<Side> => {
          const name = set.list.traces.find((trace) => trace.id === id)?.name ?? "";
          const trace = new TraceClient(set.source, id, name);
          return { trace, lanes: await trace.lanes(signal) };
        }),
      ),
    [set.source, ids.join()],
  );
  return (
    <section class="card" aria-labelledby="compare-timelines">
      <Answered answer={answer}>{([before, after]) => <Pair before={before} after={after} />}</Answered>
    </section>
  );
}

function Pair(props: { before: Side; after: Side }): JSX.Element {
  const { before, after } = props;
  const first = useMemo(() => firstPair(before.lanes.steps, after.lanes.steps), [before, after]);
  const [chosenBefore, setBefore] = useUrl("compare.stepBefore", numberAt(before, first[0]));
  const [chosenAfter, setAfter] = useUrl("compare.stepAfter", numberAt(after, first[1]));
  const [search, setSearch] = useUrl("compare.find");
  const at: [number, number] = [indexOf(before, chosenBefore, first[0]), indexOf(after, chosenAfter, first[1])];
  const models = useModels(before, after);
  const leader = useRef(0);
  useAlignment(models, leader, before.lanes.steps, after.lanes.steps, at);
  useEffect(() => models.forEach((model) => model.jumps.setText(search)), [models, search]);
  const move = (by: 1 | -1) => {
    setBefore(numberAt(before, at[0] + by));
    setAfter(numberAt(after, at[1] + by));
  };
  const canMove = (by: 1 | -1) => [before, after].every((side, i) => side.lanes.steps[at[i] + by] !== undefined);
  return (
    <>
      <div class="toolbar">
        <h2 class="table-title" id="compare-timelines">
          Timelines, aligned by step
        </h2>
        <span class="segmented" role="group" aria-label="Step">
          <button class="button" disabled={!canMove(-1)} onClick={() => move(-1)}>
            ‹ Step
          </button>
          <button class="button" disabled={!canMove(1)} onClick={() => move(1)}>
            Step ›
          </button>
        </span>
        <StepSelect label="before" side={before} value={chosenBefore} onChange={setBefore} />
        <StepSelect label="after" side={after} value={chosenAfter} onChange={setAfter} />
        {!before.trace.source.stored && (
          <input
            class="field filter"
            type="search"
            placeholder="Find in both"
            aria-label="Find in both timelines"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        )}
      </div>
      {models.map((model, i) => (
        <OneTimeline key={i} model={model} side={i === 0 ? "before" : "after"} onTouch={() => (leader.current = i)} />
      ))}
      <p class="muted hint">
        W and S zoom, A and D pan, comma and period go to the previous and next step, arrows move between slices. Steps are where
        the host marks them: a device that lags behind still works on an earlier one. Traces without steps are aligned at their starts.
      </p>
    </>
  );
}

function numberAt(side: Side, at: number): string {
  const step = side.lanes.steps[at];
  return step ? String(step.number) : "";
}

function indexOf(side: Side, number: string, fallback: number): number {
  const at = side.lanes.steps.findIndex((step) => String(step.number) === number);
  return at < 0 ? fallback : at;
}

function StepSelect(props: { label: string; side: Side; value: string; onChange: (value: string) => void }): JSX.Element | null {
  const { steps } = props.side.lanes;
  if (steps.length === 0) return null;
  const options = steps
    .slice(0, kMostSteps)
    .map((step) => [String(step.number), `step ${step.number}, ${formatDuration(step.durationNs)}`] as const);
  return <Select label={props.label} value={props.value} onChange={props.onChange} options={options} />;
}

// The device's busiest stream is pinned: below the threads it would be out of sight.
function modelOf({ trace, lanes }: Side): TimelineModel {
  const model = new TimelineModel(trace, lanes, false);
  const streams = lanes.lanes.filter((lane) => lane.kind === "stream" && lane.busyNs > 0);
  const busiest = streams.sort((a, b) => b.busyNs - a.busyNs)[0];
  if (busiest) model.shown.toggle("pinned", laneKey(busiest.id));
  return model;
}

function useModels(before: Side, after: Side): TimelineModel[] {
  const models = useMemo(() => [before, after].map(modelOf), [before, after]);
  useEffect(() => () => models.forEach((model) => model.dispose()), [models]);
  return models;
}

// The timeline that the user touched last leads, and the other follows it.
function useAlignment(
  models: readonly TimelineModel[],
  leader: MutableRef<number>,
  before: readonly StepMark[],
  after: readonly StepMark[],
  at: readonly [number, number],
): void {
  const sides: Aligned[] = [
    { steps: before, at: at[0] },
    { steps: after, at: at[1] },
  ];
  useEffect(() => {
    const follow = (leading: number) => {
      const view = followedView(models[leading].view, sides[leading], sides[1 - leading]);
      models[1 - leading].follow(view);
    };
    leader.current = 0;
    const stops = models.map((model, i) =>
      effect(() => {
        dependsOn(model.viewChanged);
        if (i === leader.current) untracked(() => follow(i));
      }),
    );
    models[0].follow(pairView(sides[0], sides[1], models[0].lanes.endNs));
    return () => stops.forEach((stop) => stop());
  }, [models, at[0], at[1]]);
}

function OneTimeline(props: { model: TimelineModel; side: "before" | "after"; onTouch: () => void }): JSX.Element {
  const { model, side, onTouch } = props;
  const selected = model.selected.value;
  const box = useRef<HTMLDivElement>(null);
  // `data-view` tells tests what is shown.
  useEffect(
    () =>
      effect(() => {
        dependsOn(model.viewChanged);
        box.current?.setAttribute("data-view", `${Math.round(model.view.fromNs)}:${Math.round(model.view.toNs)}`);
      }),
    [model],
  );
  return (
    <div class="aligned-timeline">
      <p class="aligned-name">
        <span class={`side-name ${side}`}>
          <span class="muted">{side === "before" ? "Before" : "After"}</span> <strong>{model.trace.name}</strong>
        </span>
        {selected && <Selected model={model} slice={selected} />}
        {model.coarse.value && <span class="muted">No finer detail in this report: open the traces with firelane view.</span>}
        {model.error.value && <span class="warn">{model.error.value}</span>}
      </p>
      <div
        class="aligned-lanes"
        ref={box}
        onPointerDownCapture={onTouch}
        onWheelCapture={onTouch}
        onKeyDownCapture={onTouch}
        onTouchStartCapture={onTouch}
      >
        <LanesView model={model} focusSearch={() => {}} />
      </div>
      <div class="sr-only" role="status" aria-live="polite">
        {model.announce.value}
      </div>
    </div>
  );
}

function Selected(props: { model: TimelineModel; slice: FoundSlice }): JSX.Element {
  const { model, slice } = props;
  const open = () =>
    setUrl({ trace: String(model.trace.id), pane: "timeline", "timeline.sel": slice.ref }, { history: true });
  return (
    <span>
      {slice.name}, {formatDuration(slice.durationNs)}{" "}
      <button class="link" onClick={open}>
        Open this trace there
      </button>
    </span>
  );
}
