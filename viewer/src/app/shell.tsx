// The frame around every pane: header with trace chooser, tabs, theme and help; loading progress; errors.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TraceEntry, TraceList } from "../data/answers";
import { TraceClient } from "../data/client";
import { SetClient } from "../data/set_client";
import type { Source } from "../data/source";
import { getUrl, setUrl, urlState } from "../page/link";
import { hasLightSteps, timelineOf } from "../page/navigation";
import type { Pane, SetPane, TracePane } from "../page/pane";
import { type Theme, theme, toggleTheme } from "../page/theme";
import { isTyping } from "../page/typing";
import { panes as allPanes } from "../panes";
import { ErrorBox, Loading, useAnswer } from "../parts/answer";
import { formatBytes } from "../text/format";
import { HelpDialog } from "./help";
import { useTraces } from "./traces";
import "./shell.css";

export function Shell(props: { source: Source }): JSX.Element {
  const state = urlState.value;
  const { answer, shown: entry, firstId, added, error } = useTraces(
    props.source,
    state.trace,
    (known) => !("ofSet" in shownPane(known, state.pane)),
  );
  const [help, setHelp] = useState(false);
  useHelpKey(() => setHelp((open) => !open));

  const panes = panesOf(answer);
  const pane = shownPane(answer, state.pane);
  const ofTrace = !("ofSet" in pane);

  useEffect(() => {
    document.title = entry ? `${entry.name} – ${pane.title} – Firelane` : "Firelane";
  }, [entry?.name, pane.title]);

  // On a narrow screen the tabs scroll: keep the current one in view.
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [pane.id]);

  return (
    <div class={`shell${pane.fills ? " fills" : ""}`}>
      <header class="header">
        <span class="brand">Firelane</span>
        <TraceChooser traces={answer?.traces ?? []} current={entry} firstId={firstId} />
        <span role="status">
          {added && (
            <button
              class="button new-trace"
              title={`Show ${added.name}, written after this page was opened`}
              onClick={() => setUrl(linkToTrace(String(added.id), firstId), { history: true })}
            >
              New: {added.name}
            </button>
          )}
        </span>
        <nav class="tabs" aria-label="Panes" ref={tabs}>
          {panes.map((p) => (
            <button
              key={p.id}
              class="tab"
              aria-current={p.id === pane.id ? "page" : undefined}
              onClick={() => setUrl({ pane: p.id }, { history: true })}
            >
              {p.title}
            </button>
          ))}
        </nav>
        <button class="button quiet" onClick={toggleTheme} aria-label={`Switch to the ${otherTheme(theme.value)} theme`}>
          {theme.value === "dark" ? "Light" : "Dark"}
        </button>
        <button class="button quiet" onClick={() => setHelp(true)} aria-label="Help" title="Keyboard shortcuts (?)">
          ?
        </button>
      </header>
      <main class="main">
        {error && <ErrorBox text={error} />}
        {!answer && !error && <Loading />}
        {answer && !entry && ofTrace && <ErrorBox text="The server has no traces." />}
        {entry && !("ofSet" in pane) && <TraceView key={entry.id} source={props.source} entry={entry} pane={pane} />}
        {answer && "ofSet" in pane && <SetView source={props.source} answer={answer} pane={pane} />}
      </main>
      {help && <HelpDialog panes={panes} onClose={() => setHelp(false)} />}
    </div>
  );
}

// Panes of all traces are those that the server names. Without a trace (the report of a job) there are no others.
function panesOf(answer: TraceList | null): Pane[] {
  return allPanes.filter((pane) =>
    "ofSet" in pane ? answer?.panes?.includes(pane.id) : !answer || answer.traces.length > 0 || !answer.panes?.length,
  );
}

// The link's, else the one that the server starts with. Before the first answer any pane may turn out to be there.
function shownPane(answer: TraceList | null, wanted: string | undefined): Pane {
  const panes = answer ? panesOf(answer) : allPanes;
  const find = (id: string | null | undefined) => panes.find((pane) => pane.id === id);
  return find(wanted) ?? find(answer?.firstPane) ?? panes.find((pane) => !("ofSet" in pane)) ?? panes[0];
}

function otherTheme(name: Theme): Theme {
  return name === "dark" ? "light" : "dark";
}

function SetView(props: { source: Source; answer: TraceList; pane: SetPane }): JSX.Element {
  const { source, answer, pane } = props;
  const client = useMemo(() => new SetClient(source, answer), [source, answer]);
  const Component = pane.ofSet;
  return <Component key={pane.id} set={client} />;
}

function TraceView(props: { source: Source; entry: TraceEntry; pane: TracePane }): JSX.Element {
  const { entry } = props;
  if (entry.state === "failed") return <ErrorBox text={entry.error ?? `${entry.name} could not be loaded.`} />;
  if (entry.state !== "ready") return <LoadingTrace entry={entry} />;
  return <LoadedTrace {...props} />;
}

// The timeline waits for the answer whether there are two of them: else it would show the other one first.
function LoadedTrace(props: { source: Source; entry: TraceEntry; pane: TracePane }): JSX.Element {
  const { source, entry, pane } = props;
  const { note, isKnown } = useLightSteps(source, entry);
  const isTimeline = pane.id === "timeline";
  const steps = isTimeline && note !== null && getUrl("steps") !== "full" ? "light" : "";
  const client = useMemo(
    () => new TraceClient(source, entry.id, entry.name, steps),
    [source, entry.id, entry.name, steps],
  );
  if (isTimeline && !isKnown) return <Loading />;
  const Component = pane.component;
  return (
    <>
      {isTimeline && note !== null && <StepsChooser steps={steps} note={note} />}
      <Component key={`${pane.id} ${steps}`} trace={client} />
    </>
  );
}

function useLightSteps(source: Source, entry: TraceEntry): { note: string | null; isKnown: boolean } {
  const answer = useAnswer((signal) => new TraceClient(source, entry.id, entry.name).light(signal), [source, entry.id]);
  const isKnown = answer.state !== "loading";
  const note = answer.value?.note ?? null;
  useEffect(() => {
    hasLightSteps.value = isKnown ? note !== null : null;
    return () => {
      hasLightSteps.value = null;
    };
  }, [isKnown, note]);
  return { note, isKnown };
}

// Which of the two timelines of a recording is shown.
function StepsChooser(props: { steps: string; note: string }): JSX.Element {
  const show = (steps: "full" | null) => setUrl(timelineOf(steps), { history: true });
  return (
    <div class="toolbar steps-chooser">
      <span class="segmented" role="group" aria-label="Steps">
        <button class="button" aria-pressed={props.steps === "light"} onClick={() => show(null)}>
          Light steps
        </button>
        <button class="button" aria-pressed={props.steps !== "light"} onClick={() => show("full")}>
          Full steps
        </button>
      </span>
      <span class="muted">{props.note}</span>
    </div>
  );
}

function LoadingTrace(props: { entry: TraceEntry }): JSX.Element {
  const { name, bytesDone, bytesTotal } = props.entry;
  const share = bytesTotal > 0 ? Math.min(1, bytesDone / bytesTotal) : 0;
  return (
    <div class="loading-trace">
      <label>
        Loading {name}
        <progress max={1} value={share} />
      </label>
      <p class="muted" role="status">
        {formatBytes(bytesDone)} of {formatBytes(bytesTotal)}
      </p>
    </div>
  );
}

function TraceChooser(props: {
  traces: TraceEntry[];
  current: TraceEntry | undefined;
  firstId: string | undefined;
}): JSX.Element | null {
  const { traces, current, firstId } = props;
  if (!current) return null;
  if (traces.length === 1) {
    return (
      <span class="trace-name" title={current.name}>
        {current.name}
      </span>
    );
  }
  return (
    <select
      class="trace-name"
      aria-label="Trace"
      value={String(current.id)}
      onChange={(event) => setUrl(linkToTrace(event.currentTarget.value, firstId), { history: true })}
    >
      {traces.map((trace) => (
        <option key={trace.id} value={String(trace.id)}>
          {trace.name}
        </option>
      ))}
    </select>
  );
}

// Keeps the pane, drops positions: they mean nothing in another trace.
function linkToTrace(id: string, firstId: string | undefined): Record<string, string | null> {
  const changes: Record<string, string | null> = { trace: id === firstId ? null : id, steps: null };
  for (const key of Object.keys(urlState.value)) if (key.includes(".")) changes[key] = null;
  return { ...changes, pane: getUrl("pane") };
}

// `?` anywhere but in a field.
function useHelpKey(toggle: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "?" && !isTyping(event.target)) toggle();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
