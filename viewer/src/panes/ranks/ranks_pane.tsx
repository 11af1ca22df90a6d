// Ranks: how a distributed job scales, who held up the others and why, from the parts of all ranks. A rank's own trace is loaded
// when it is opened.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Cell, Report, Table } from "../../data/answers";
import type { JobLayout } from "../../data/job_answers";
import { type AxisWindow, JobClient } from "../../data/job_client";
import { setUrl, useUrl } from "../../page/link";
import { openInTimeline } from "../../page/navigation";
import type { Pane, SetPaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";
import { Facts, Notes } from "../../parts/notes";
import { kDefaultRows, ReportTables } from "../../parts/report/report_view";
import { formatPercent } from "../../text/format";
import { CollectivesSection } from "./collectives";
import { HeatSection } from "./heat_map";
import { clampWindow } from "./lanes";
import { RankTimeline } from "./rank_timeline";
import { RanksHelp } from "./help";
import { TopologySection } from "./topology_map";
import "./ranks.css";

export const ranksPane: Pane = { id: "ranks", title: "Ranks", ofSet: RanksPane, help: RanksHelp };

const kOwnCards = ["findings"];

function RanksPane(props: SetPaneProps): JSX.Element {
  const job = useMemo(() => new JobClient(props.set.source), [props.set.source]);
  const report = useAnswer((signal) => job.report(kDefaultRows, signal), [job]);
  const layout = useAnswer((signal) => job.layout(signal), [job]);
  return (
    <div class="page ranks-pane">
      <h1 class="sr-only">Ranks</h1>
      <Answered answer={report}>
        {(found) => (
          <div class="stack">
            <Summary report={found} />
            <Answered answer={layout}>{(known) => <Pictures job={job} layout={known} />}</Answered>
            <ReportTables id="ranks" report={found} skip={kOwnCards} tables={kTableOptions} />
          </div>
        )}
      </Answered>
    </div>
  );
}

// Rows of these tables are about ranks, not about slices of the trace that is shown.
const kTableOptions = Object.fromEntries(
  [
    "stragglers",
    "what_ifs",
    "ranks",
    "collectives",
    "groups",
    "critical_path",
    "pipeline_stages",
    "types",
    "clocks",
    "refused",
    "hangs",
  ].map((name) => [name, { place: null }] as const),
);

function Summary(props: { report: Report }): JSX.Element {
  const { report } = props;
  const headline = report.facts.find((fact) => fact.name === "headline")?.value;
  const findings = report.tables.find((table) => table.name === "findings");
  return (
    <section class="card">
      <p class="ranks-headline">{String(headline ?? "")}</p>
      <Facts facts={report.facts} />
      {findings && findings.rows.length > 0 && <Findings table={findings} />}
      <Notes notes={report.notes} />
    </section>
  );
}

function Findings(props: { table: Table }): JSX.Element {
  const at = (name: string) => props.table.columns.findIndex((column) => column.name === name);
  const [title, share, saved, remedy, see, confidence] = [
    "title",
    "share_of_step_percent",
    "saves",
    "try",
    "see",
    "confidence",
  ].map(at);
  const saves = (row: Cell[]) => (row[saved] ? `saves ${String(row[saved])} (${formatPercent(Number(row[share]))} of it)` : "");
  return (
    <ol class="rank-findings">
      {props.table.rows.map((row) => (
        <li key={String(row[title])}>
          <strong>{String(row[title])}</strong>
          <div>{[saves(row), `confidence: ${String(row[confidence])}`].filter(Boolean).join("; ")}</div>
          <div>Try: {String(row[remedy])}</div>
          {row[see] && <div class="muted">See: {String(row[see])}</div>}
        </li>
      ))}
    </ol>
  );
}

function Pictures(props: { job: JobClient; layout: JobLayout }): JSX.Element {
  const { job, layout } = props;
  const whole = { fromNs: layout.fromNs, toNs: layout.toNs };
  const [from, to] = [useUrl("ranks.from", "")[0], useUrl("ranks.to", "")[0]];
  const [collective, setCollective] = useUrl("ranks.collective", "");
  const window =
    from && to && Number(to) > Number(from) ? clampWindow({ fromNs: Number(from), toNs: Number(to) }, whole) : whole;
  const setWindow = (next: AxisWindow) => {
    const all = next.fromNs <= whole.fromNs && next.toNs >= whole.toNs;
    setUrl({
      "ranks.from": all ? null : String(Math.round(next.fromNs)),
      "ranks.to": all ? null : String(Math.round(next.toNs)),
    });
  };
  const select = (id: number, around?: AxisWindow) => {
    setCollective(id < 0 ? "" : String(id));
    if (around) setWindow(clampWindow(around, whole));
  };
  const showStep = (rank: number, step: number) => {
    const found = layout.steps.find(([number]) => number === step);
    if (found) setWindow({ fromNs: found[1], toNs: found[2] });
    const shown = new Set([...layout.firstRanks, rank]);
    setUrl({ "ranks.shown": [...shown].sort((a, b) => a - b).join(",") });
  };
  // Positions of the trace that was shown mean nothing in this one.
  const openTrace = (rank: number, traceNs: number, durationNs: number) => {
    const trace = layout.ranks.find(([number]) => number === rank)?.[2] ?? -1;
    if (trace < 0 || job.source.stored) return;
    setUrl({ trace: String(trace) });
    openInTimeline({ startNs: Math.max(0, traceNs), durationNs: Math.max(1000, Math.round(durationNs)) });
  };
  const selected = collective === "" ? -1 : Number(collective);
  return (
    <div class="stack">
      <HeatSection job={job} values={layout.heatValues} onPick={showStep} />
      <RankTimeline
        job={job}
        layout={layout}
        window={window}
        onWindow={setWindow}
        selected={selected}
        onSelect={select}
        onOpen={openTrace}
      />
      <CollectivesSection
        job={job}
        layout={layout}
        window={window}
        selected={selected}
        onSelect={select}
        onOpen={openTrace}
      />
      <TopologySection layout={layout} onShow={(ranks) => setUrl({ "ranks.shown": ranks })} />
    </div>
  );
}
