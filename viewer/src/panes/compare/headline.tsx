// The first line of a comparison, and the reasons below it.

import type { JSX } from "preact";
import type { Cell, Report } from "../../data/answers";
import { formatDuration } from "../../text/format";
import { verdictOf } from "./verdict";
import "./headline.css";

export function Headline(props: { report: Report }): JSX.Element {
  const { report } = props;
  const fact = (name: string): Cell => report.facts.find((each) => each.name === name)?.value ?? null;
  const [headline, rest] = splitOnce(String(fact("headline") ?? ""), ": ");
  const verdict = verdictOf(fact("outcome"), fact("ratio"));
  const [before, after] = [Number(fact("step_before_ns")), Number(fact("step_after_ns"))];
  const longest = Math.max(before, after, 1);
  const reasons = report.tables.find((table) => table.name === "reasons")?.rows ?? [];
  return (
    <section class={`card headline ${verdict.tone}`} aria-labelledby="compare-headline">
      <div class="headline-words">
        <h2 id="compare-headline">
          <span class="headline-badge">{verdict.word}</span> {headline}
        </h2>
        <p>{rest}</p>
        {reasons.length > 0 && (
          <ol class="reasons">
            {reasons.map(([text]) => (
              <li key={String(text)}>{String(text)}</li>
            ))}
          </ol>
        )}
      </div>
      <dl class="headline-sides">
        {[
          { name: "Before", ns: before, limit: fact("verdict_before") },
          { name: "After", ns: after, limit: fact("verdict_after") },
        ].map(({ name, ns, limit }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <strong>{formatDuration(ns)}</strong> a step
              <span class="side-bar" aria-hidden="true">
                <span class={name.toLowerCase()} style={{ width: `${(100 * ns) / longest}%` }} />
              </span>
              {limit !== null && <span class="muted">{String(limit)}</span>}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}
