// The reports without a pane of their own, with a list to choose from.

import type { JSX } from "preact";
import type { Report } from "../../data/answers";
import { setUrl, useUrl } from "../../page/link";
import type { Pane, PaneProps } from "../../page/pane";
import { Empty, NoDevice } from "../../parts/notes";
import { ReportView, type TableOptions } from "../../parts/report/report_view";
import { CostView } from "./cost_view";
import "./more.css";

interface MoreReport {
  verb: string;
  title: string;
  intro: string;
  ofRecording?: boolean;
  tables?: Record<string, TableOptions>;
  emptyState?: (report: Report) => JSX.Element | null;
}

function isEmpty(report: Report): boolean {
  return report.tables.every((table) => table.rows.length === 0);
}

function emptyWithoutDevice(report: Report): JSX.Element | null {
  return isEmpty(report) ? <NoDevice /> : null;
}

function emptyWithoutSyncs(report: Report): JSX.Element | null {
  if (!isEmpty(report)) return null;
  return (
    <Empty
      title="No synchronizations"
      notes={["The host never waited for a GPU, which is ideal. A CPU-only program has nothing to wait for."]}
    />
  );
}

const kReports: MoreReport[] = [
  {
    verb: "breakdown",
    title: "Breakdown",
    intro: "Where the time of a step goes, on the device and on the host. The parts of each side add up to the step.",
    tables: { parts: { place: null }, steps: { linkColumn: "step" } },
  },
  {
    verb: "lines",
    title: "Lines",
    intro:
      "What each line of the program costs a step: in the operators that it calls, in Python before them, and in the backward pass that it causes.",
    tables: { lines: { place: null } },
    emptyState: (report) => (isEmpty(report) ? <Empty title="No lines in this trace" notes={report.notes} /> : null),
  },
  {
    verb: "idle",
    title: "Device idle time",
    intro: "Why the device was idle, and the longest gaps. Click a row to see it in the timeline.",
    tables: { causes: { place: null }, gaps: { defaultSort: "-duration_ns" } },
    emptyState: emptyWithoutDevice,
  },
  {
    verb: "launches",
    title: "Launches",
    intro: "How work reaches the device: the launch calls, and how long work waits in the queue.",
    emptyState: emptyWithoutDevice,
  },
  {
    verb: "syncs",
    title: "Synchronizations",
    intro: "Calls that block the host until the device is done.",
    tables: { syncs: { defaultSort: "-duration_ns", linkColumn: "call" } },
    emptyState: emptyWithoutSyncs,
  },
  {
    verb: "critical-path",
    title: "Critical path",
    intro: "The chain of work that determines how long a step takes, without profiling overhead. Speeding up anything else changes nothing.",
    tables: { classes: { place: null }, pieces: { defaultSort: "-duration_ns" } },
  },
  {
    verb: "fusion",
    title: "Fusion",
    intro: "Chains of kernels that could be fused into one, and the most that would save.",
    emptyState: (report) => (report.facts.find((fact) => fact.name === "kernels")?.value === 0 ? <NoDevice /> : null),
  },
  { verb: "cost", title: "Cost", intro: "" },
  { verb: "lanes", title: "Threads and streams", intro: "Every lane of the timeline." },
  { verb: "info", title: "Trace info", intro: "What was recorded, with which settings, and what was lost.", ofRecording: true },
];

export const morePane: Pane = { id: "more", title: "More", component: MorePane };

function MorePane(props: PaneProps): JSX.Element {
  const [verb] = useUrl("more.report", kReports[0].verb);
  const report = kReports.find((each) => each.verb === verb) ?? kReports[0];
  return (
    <div class="page more">
      <nav class="side" aria-label="Reports">
        {kReports.map((each) => (
          <button
            key={each.verb}
            class="side-item"
            aria-current={each.verb === report.verb ? "page" : undefined}
            onClick={() => setUrl({ "more.report": each === kReports[0] ? null : each.verb }, { history: true })}
          >
            {each.title}
          </button>
        ))}
      </nav>
      <div class="stack more-body">
        <h1>{report.title}</h1>
        {report.verb === "cost" ? (
          <CostView trace={props.trace} />
        ) : (
          <ReportView
            key={report.verb}
            id={`more.${report.verb}`}
            trace={props.trace}
            verb={report.verb}
            intro={report.intro}
            ofRecording={report.ofRecording}
            tables={report.tables}
            emptyState={report.emptyState}
          />
        )}
      </div>
    </div>
  );
}
