// Reports that need no pane of their own, one list beside them.

import type { JSX } from "preact";
import type { Pane, PaneProps } from "../../page/pane";
import { setUrl, useUrl } from "../../page/link";
import type { Report } from "../../data/answers";
import { CostView } from "./cost_view";
import { Empty, NoDevice } from "../../parts/notes";
import { ReportView, type TableOptions } from "../../parts/report/report_view";
import "./more.css";

interface MoreReport {
  verb: string;
  title: string;
  intro: string;
  tables?: Record<string, TableOptions>;
  instead?: (report: Report) => JSX.Element | null;
}

function isEmpty(report: Report): boolean {
  return report.tables.every((table) => table.rows.length === 0);
}

function unlessDevice(report: Report): JSX.Element | null {
  return isEmpty(report) ? <NoDevice /> : null;
}

function noWaits(report: Report): JSX.Element | null {
  if (!isEmpty(report)) return null;
  return (
    <Empty
      title="No call waits for a device"
      notes={["The host never stopped until a GPU was done, which is as it should be; a program on the CPU has none to wait for."]}
    />
  );
}

const kReports: MoreReport[] = [
  {
    verb: "breakdown",
    title: "Breakdown",
    intro: "Where a step goes, on the device and on the host. The parts of each side add up to the step.",
    tables: { parts: { place: null }, steps: { linkColumn: "step" } },
  },
  {
    verb: "idle",
    title: "Idle device",
    intro: "Why the device did nothing, and the longest gaps: each row opens its place in the timeline.",
    tables: { causes: { place: null }, gaps: { defaultSort: "-duration_ns" } },
    instead: unlessDevice,
  },
  {
    verb: "launches",
    title: "Launches",
    intro: "How work reaches the device: the calls that queue it, and how long it waits in the queue.",
    instead: unlessDevice,
  },
  {
    verb: "syncs",
    title: "Synchronisations",
    intro: "Calls in which the host stopped until the device was done.",
    tables: { syncs: { defaultSort: "-duration_ns", linkColumn: "call" } },
    instead: noWaits,
  },
  {
    verb: "critical-path",
    title: "Critical path",
    intro: "The chain of work that decides how long a step takes, recording taken out. Shortening anything else changes nothing.",
    tables: { classes: { place: null }, pieces: { defaultSort: "-duration_ns" } },
  },
  {
    verb: "fusion",
    title: "Fusion",
    intro: "Chains of kernels that one kernel could do, and what that would save at most.",
    instead: (report) => (report.facts.find((fact) => fact.name === "kernels")?.value === 0 ? <NoDevice /> : null),
  },
  { verb: "cost", title: "Cost", intro: "" },
  { verb: "lanes", title: "Threads and streams", intro: "Every lane of the timeline." },
  { verb: "info", title: "The trace", intro: "What was recorded, with what, and what was lost." },
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
      <div class="pile more-body">
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
            tables={report.tables}
            instead={report.instead}
          />
        )}
      </div>
    </div>
  );
}
