// Two steps side by side: how their parts and names differ.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { OfSteps, Overview, Report, StepRow, Table } from "../../data/answers";
import { useUrl } from "../../page/link";
import type { PaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";
import { Checkbox } from "../../parts/fields";
import { causeColors } from "../../parts/steps/causes";
import { DescribedTable } from "../../parts/table/described_table";
import { formatChange, formatDuration } from "../../text/format";
import { compareTables } from "./compare";

export interface ComparisonProps extends PaneProps {
  steps: Overview["steps"];
  first: StepRow;
  second: StepRow;
  onFirst: (step: number) => void;
  onSecond: (step: number) => void;
}

export function Comparison(props: ComparisonProps): JSX.Element {
  const { trace, first, second } = props;
  const answer = useAnswer(
    (signal) =>
      Promise.all(
        [first, second].map((row) => trace.range(row.startNs, row.startNs + row.durationNs, undefined, signal)),
      ),
    [trace, first.step, second.step],
  );
  const differenceNs = second.durationNs - first.durationNs;
  return (
    <section class="card">
      <div class="toolbar">
        <h2 class="table-title">Compare</h2>
        <StepSelect label="First step" rows={props.steps.rows} value={first.step} onChange={props.onFirst} />
        <span>with</span>
        <StepSelect label="Second step" rows={props.steps.rows} value={second.step} onChange={props.onSecond} />
        <span class="muted">
          {formatDuration(first.durationNs)} and {formatDuration(second.durationNs)}:{" "}
          <strong>{formatChange(differenceNs)}</strong>
        </span>
      </div>
      <Parts {...props} />
      <Answered answer={answer}>
        {([before, after]) => <Names before={before} after={after} first={first.step} second={second.step} steps={props.steps.recordedSteps} />}
      </Answered>
    </section>
  );
}

function StepSelect(props: {
  label: string;
  rows: StepRow[];
  value: number;
  onChange: (step: number) => void;
}): JSX.Element {
  return (
    <select
      class="field"
      aria-label={props.label}
      value={String(props.value)}
      onChange={(event) => props.onChange(Number(event.currentTarget.value))}
    >
      {props.rows.map((row) => (
        <option key={row.step} value={String(row.step)}>
          step {row.step}, {formatDuration(row.durationNs)}
          {row.warmup ? ", warm-up" : ""}
        </option>
      ))}
    </select>
  );
}

// Both steps as bars on the same scale, and a table of their parts.
function Parts(props: ComparisonProps): JSX.Element | null {
  const { steps, first, second } = props;
  const shown = steps.parts.flatMap((name, at) =>
    (first.partsNs[at] ?? 0) > 0 || (second.partsNs[at] ?? 0) > 0 ? [{ name, at }] : [],
  );
  if (shown.length === 0) return null;
  const colors = causeColors(
    shown.map((part) => part.name),
    shown.map((part) => first.partsNs[part.at] + second.partsNs[part.at]),
  );
  const longest = Math.max(first.durationNs, second.durationNs);
  return (
    <div class="parts">
      {[first, second].map((row) => (
        <div class="part-bar" key={row.step} aria-hidden="true">
          <span class="part-label">step {row.step}</span>
          <span class="part-track">
            {shown.map((part, i) => (
              <span
                key={part.name}
                style={{ width: `${(100 * row.partsNs[part.at]) / longest}%`, background: `var(${colors[i]})` }}
              />
            ))}
          </span>
        </div>
      ))}
      <table class="plain-table" aria-label="Parts of both steps">
        <thead>
          <tr>
            <th scope="col" class="text">
              Part
            </th>
            <th scope="col">step {first.step}</th>
            <th scope="col">step {second.step}</th>
            <th scope="col">Difference</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((part, i) => (
            <tr key={part.name}>
              <th scope="row" class="text">
                <span class="swatch" style={{ background: `var(${colors[i]})` }} aria-hidden="true" />{" "}
                {steps.labels[part.at]}
              </th>
              <td class="number">{formatDuration(first.partsNs[part.at])}</td>
              <td class="number">{formatDuration(second.partsNs[part.at])}</td>
              <td class="number">{formatChange(second.partsNs[part.at] - first.partsNs[part.at])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// The table of a range report that has names and times.
function namesTable(report: Report): Table | null {
  return report.tables.find((table) => table.columns.some((column) => column.name === "name") && valueColumn(table)) ?? null;
}

function valueColumn(table: Table): string | null {
  const names = table.columns.map((column) => column.name);
  return ["self_ns", "total_ns"].find((name) => names.includes(name)) ?? null;
}

// Waiting threads and annotations around the step differ just as the step does: hidden by default.
const kWork = new Set(["op", "runtime", "driver", "kernel", "copy", "set", "collective", "sync"]);

function onlyWork(table: Table): Table {
  const at = table.columns.findIndex((column) => column.name === "kind");
  return at < 0 ? table : { ...table, rows: table.rows.filter((row) => kWork.has(String(row[at]))) };
}

function Names(props: {
  before: Report;
  after: Report;
  first: number;
  second: number;
  steps: OfSteps;
}): JSX.Element | null {
  const [all, setAll] = useUrl("steps.names.all");
  const table = useMemo(() => {
    const [before, after] = [props.before, props.after].map((report) => {
      const found = namesTable(report);
      return found && all === "" ? onlyWork(found) : found;
    });
    if (!before || !after) return null;
    const key = ["kind", "name"].filter((name) => before.columns.some((column) => column.name === name));
    return compareTables(before, after, {
      key,
      value: valueColumn(before)!,
      labels: [`step ${props.first}`, `step ${props.second}`],
    });
  }, [props.before, props.after, all]);
  if (!table) return null;
  return (
    <DescribedTable
      id="steps.names"
      table={{ ...table, title: "By name: self time in each step" }}
      linkColumn="name"
      steps={props.steps}
      maxHeight="360px"
      tools={
        <Checkbox label="include Python and annotations" value={all !== ""} onChange={(on) => setAll(on ? "1" : "")} />
      }
    />
  );
}
