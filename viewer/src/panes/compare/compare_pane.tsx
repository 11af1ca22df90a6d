// Two sides of one run or several: how much slower or faster a step is, whether that is more than noise, and why.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Cell, Report, TraceEntry } from "../../data/answers";
import type { Sides } from "../../data/set_client";
import { setUrl, urlState, useUrl } from "../../page/link";
import type { TimelinePlace } from "../../page/navigation";
import type { Pane, SetPaneProps } from "../../page/pane";
import { Answered, ErrorBox, Loading, useAnswer } from "../../parts/answer";
import { Checkbox } from "../../parts/fields";
import { Empty, Notes } from "../../parts/notes";
import { ReportTables, type TableOptions } from "../../parts/report/report_view";
import { DifferenceFlame } from "./flame_view";
import { Headline } from "./headline";
import { CompareHelp } from "./help";
import { RunsView } from "./runs_view";
import { notReady, sidesOf } from "./sides";
import { SideChooser } from "./side_chooser";
import { changedWork, withSigns } from "./tables";
import { Timelines } from "./timelines";
import { WaterfallView } from "./waterfall_view";
import "./compare.css";

export const comparePane: Pane = { id: "compare", title: "Compare", ofSet: ComparePane, help: CompareHelp };

const kShown = [
  ["sides", "Two sides"],
  ["runs", "All runs"],
] as const;

function ComparePane(props: SetPaneProps): JSX.Element {
  const { list } = props.set;
  const state = urlState.value;
  const sides = sidesOf(list, state["compare.before"] ?? "", state["compare.after"] ?? "");
  const [show, setShow] = useUrl("compare.show", list.compare?.by ? "runs" : "sides");
  const several = list.traces.length > 2 || show === "runs";
  const loading = list.traces.filter((trace) => trace.state === "loading" || trace.state === "unloaded");
  return (
    <div class="page">
      <h1 class="sr-only">Compare</h1>
      {several && (
        <span class="segmented" role="group" aria-label="What is compared">
          {kShown.map(([id, title]) => (
            <button key={id} class="button" aria-pressed={show === id} onClick={() => setShow(id)}>
              {title}
            </button>
          ))}
        </span>
      )}
      {show === "runs" ? (
        loading.length > 0 ? (
          <StillLoading traces={loading} />
        ) : (
          <RunsView set={props.set} />
        )
      ) : sides ? (
        <TwoSides {...props} sides={sides} />
      ) : (
        <Empty title="One trace only" notes={["A comparison needs two."]} how="To open two:" code="firelane view before.lane after.lane" />
      )}
    </div>
  );
}

interface SidesProps extends SetPaneProps {
  sides: Sides;
}

function TwoSides(props: SidesProps): JSX.Element {
  const { set, sides } = props;
  const { loading, failed } = notReady(set.list, sides);
  return (
    <>
      <SideChooser list={set.list} sides={sides} />
      {failed.map((trace) => (
        <ErrorBox key={trace.id} text={trace.error ?? `${trace.name} could not be loaded.`} />
      ))}
      {failed.length === 0 && loading.length > 0 && <StillLoading traces={loading} />}
      {failed.length === 0 && loading.length === 0 && <Comparison {...props} />}
    </>
  );
}

function StillLoading(props: { traces: TraceEntry[] }): JSX.Element {
  return <Loading text={`Loading ${props.traces.map((trace) => trace.name).join(", ")}…`} />;
}

function Comparison(props: SidesProps): JSX.Element {
  const { set, sides } = props;
  const answer = useAnswer((signal) => set.compare(sides, signal), [set.source, JSON.stringify(sides)]);
  return <Answered answer={answer}>{(report) => <Compared {...props} report={report} />}</Answered>;
}

const kTables: Record<string, TableOptions> = {
  figures: { hidden: ["before", "after", "p"], place: null },
  work: {
    hidden: ["places", "p", "line"],
    first: ["change", "op", "before_ns", "after_ns", "by_calls_ns", "by_speed_ns", "step_change_ns", "calls_before", "calls_after"],
  },
  modules: { place: null },
  memory: { place: null },
  findings: { place: null },
  environment: { place: null },
};

// A row of work shows its kernel, or its operator, in the timelines of this pane. A report in one file cannot search.
function tablesFor(report: Report, stored: boolean): Record<string, TableOptions> {
  const onPlace = (place: TimelinePlace) => {
    setUrl({ "compare.find": place.name ?? null });
    document.getElementById("compare-timelines")?.scrollIntoView({ block: "start" });
  };
  const linked = ["work", "ops", "places", "syncs"].map((name): [string, TableOptions] => {
    const columns = report.tables.find((table) => table.name === name)?.columns ?? [];
    const at = (column: string) => columns.findIndex((each) => each.name === column);
    const place = (row: Cell[]) => {
      const text = row[at("kernel_after")] ?? row[at("kernel_before")] ?? row[at("op")];
      return typeof text === "string" ? { name: text } : null;
    };
    return [name, { ...kTables[name], place: stored ? null : place, onPlace, linkColumn: "op" }];
  });
  return { ...kTables, ...Object.fromEntries(linked) };
}

function Compared(props: SidesProps & { report: Report }): JSX.Element {
  const [all, setAll] = useUrl("compare.work");
  const report = useMemo(() => {
    const signed = withSigns(props.report);
    if (all !== "") return signed;
    const stepNs = Number(signed.facts.find((fact) => fact.name === "step_before_ns")?.value ?? 0);
    return { ...signed, tables: signed.tables.map((table) => (table.name === "work" ? changedWork(table, stepNs) : table)) };
  }, [props.report, all]);
  const tables = useMemo(() => {
    const options = tablesFor(report, props.set.source.stored);
    const tools = <Checkbox label="include unchanged parts" value={all !== ""} onChange={(on) => setAll(on ? "all" : "")} />;
    return { ...options, work: { ...options.work, tools } };
  }, [report]);
  const parts = report.tables.find((table) => table.name === "parts");
  return (
    <div class="stack">
      <Headline report={report} />
      {parts && <WaterfallView table={parts} />}
      <Notes notes={report.notes} />
      <DifferenceFlame set={props.set} sides={props.sides} />
      <Timelines set={props.set} sides={props.sides} />
      <ReportTables id="compare" report={report} tables={tables} skip={["reasons", "parts"]} />
    </div>
  );
}
