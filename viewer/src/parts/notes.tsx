// The text around tables: facts as labeled values, notes as a list, and what a pane shows when it has no data.

import type { JSX } from "preact";
import type { Report } from "../data/answers";
import { isId } from "../text/cells";
import { formatByKind } from "../text/format";
import { withDetails } from "../text/notes";
import "./notes.css";

export function Notes(props: { notes: readonly string[] }): JSX.Element | null {
  const { notes } = props;
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

const kLabeled = "recorded_steps"; // light or full: StepsLabel says it

// Facts without a label are for programs; facts without a value are unknown.
export function Facts(props: { facts: Report["facts"]; only?: readonly string[] }): JSX.Element | null {
  const facts = props.facts.filter(
    (fact) => fact.label !== "" && fact.name !== kLabeled && fact.value !== null && (!props.only || props.only.includes(fact.name)),
  );
  if (facts.length === 0) return null;
  return (
    <dl class="fact-line">
      {withDetails(facts, (fact) => fact.label).map(({ item, details }) => (
        <div key={item.name}>
          <dt>{item.label}</dt>
          <dd class={item.kind === "text" ? "fact-text" : ""}>
            {factText(item)}
            {details.length > 0 && (
              <div class="fact-detail">{details.map((each) => `${each.label.trim()} ${factText(each)}`).join(", ")}</div>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function factText(fact: Report["facts"][number]): string {
  return typeof fact.value === "number" && isId(fact.name) ? String(fact.value) : formatByKind(fact.kind, fact.value);
}

export function NoDevice(props: { notes?: readonly string[] }): JSX.Element {
  return (
    <Empty
      title="No device work in this trace"
      notes={["The program ran on the CPU, or the GPU was not recorded.", ...(props.notes ?? [])]}
      code="profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
    />
  );
}

// An empty state: what is missing, and how to record it.
export function Empty(props: {
  title: string;
  notes?: readonly string[];
  how?: string; // introduces the code
  code?: string;
}): JSX.Element {
  return (
    <div class="empty card">
      <h2>{props.title}</h2>
      {props.notes?.map((note) => <p key={note}>{note}</p>)}
      {props.code && <p class="muted">{props.how ?? "To record it:"}</p>}
      {props.code && <pre class="code">{props.code}</pre>}
    </div>
  );
}
