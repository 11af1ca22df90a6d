// Any described report as a page: facts, tables and notes.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Report, Table } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import type { Params } from "../../data/source";
import { Answered, useAnswer } from "../answer";
import { Facts, Notes } from "../notes";
import { StepsLabel } from "../steps/steps_label";
import { DescribedTable, type DescribedTableProps } from "../table/described_table";

export const kDefaultRows = 10_000;
const kAllRows = 100_000;

// Tables whose `name` column does not hold names of slices: their rows do not link to the timeline.
const kNoPlaces = new Set(["devices", "losses", "recorder_losses", "answers", "events", "recording_options", "at_peak"]);

export function useReport(trace: TraceClient, verb: string, params: Params = {}) {
  const [rows, setRows] = useState(kDefaultRows);
  const answer = useAnswer(
    (signal) => trace.report(verb, { ...params, rows }, signal),
    [trace, verb, JSON.stringify(params), rows],
  );
  return { answer, loadAll: () => setRows(kAllRows) };
}

export type TableOptions = Partial<Omit<DescribedTableProps, "id" | "table">>;

// An empty table is shown where nothing else explains that there are no rows.
function isNeeded(table: Table, report: Report): boolean {
  return table.notes.length > 0 || (report.tables.length === 1 && report.notes.length === 0);
}

export function ReportTables(props: {
  id: string;
  report: Report;
  tables?: Record<string, TableOptions>; // by table name
  skip?: readonly string[];
  onAllRows?: () => void;
}): JSX.Element {
  const { report } = props;
  const several = report.tables.length > 1;
  return (
    <>
      {report.tables
        .filter((table) => !props.skip?.includes(table.name) && (table.rows.length > 0 || isNeeded(table, report)))
        .map((table) => (
          <section class="card" key={table.name}>
            <DescribedTable
              id={`${props.id}.${table.name}`}
              table={table}
              place={kNoPlaces.has(table.name) ? null : undefined}
              maxHeight={several ? "420px" : "calc(100vh - 230px)"}
              steps={report.recordedSteps}
              onAllRows={props.onAllRows}
              {...props.tables?.[table.name]}
            />
          </section>
        ))}
    </>
  );
}

// A whole report, with a line on what it is for.
export function ReportView(props: {
  id: string;
  trace: TraceClient;
  verb: string;
  params?: Params;
  intro?: string;
  ofRecording?: boolean; // about the whole recording, not about some of its steps
  tables?: Record<string, TableOptions>;
  emptyState?: (report: Report) => JSX.Element | null; // shown instead, where the trace has no data for the report
}): JSX.Element {
  const { answer, loadAll } = useReport(props.trace, props.verb, props.params);
  return (
    <>
      {props.intro && (
        <p class="intro">
          {props.intro} {answer.value && !props.ofRecording && !props.emptyState?.(answer.value) && <StepsLabel steps={answer.value.recordedSteps} />}
        </p>
      )}
      <Answered answer={answer}>
        {(report) =>
          props.emptyState?.(report) ?? (
            <div class="stack">
              <Facts facts={report.facts} />
              <Notes notes={report.notes} />
              <ReportTables id={props.id} report={report} tables={props.tables} onAllRows={loadAll} />
            </div>
          )
        }
      </Answered>
    </>
  );
}
