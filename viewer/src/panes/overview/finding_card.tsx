// One finding: what it is, its share of a step, what fixing it would save, what to try, and the evidence.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Finding } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import { openInTimeline } from "../../page/navigation";
import { Answered, useAnswer } from "../../parts/answer";
import { CopyButton } from "../../parts/clipboard";
import { ShareBar } from "../../parts/share_bar";
import { formatDuration, formatPercent } from "../../text/format";
import { truncateMiddle, shortName } from "../../text/names";
import { capitalize, eventRef } from "./diagnosis";
import "./finding_card.css";

const kEvidence = 4;

export function FindingCard(props: {
  trace: TraceClient;
  finding: Finding;
  number: number;
}): JSX.Element {
  const { finding } = props;
  const [explained, setExplained] = useState(false);
  const { saves, speedup } = finding.gain;
  // Of an allocation that failed, there is neither a share nor a gain.
  const isOfTime = saves !== "" || finding.shareOfStepPercent > 0;
  return (
    <article class="finding card" aria-labelledby={`finding-${finding.id}`}>
      <header class="finding-head">
        <span class="finding-number" aria-hidden="true">
          {props.number}
        </span>
        <h3 id={`finding-${finding.id}`}>{capitalize(finding.title)}</h3>
      </header>
      <div class="finding-figures">
        {isOfTime && (
          <>
            <div>
              <span class="figure-label">Share of a step</span>
              <span class="figure">
                <ShareBar percent={finding.shareOfStepPercent} class="wide" /> {formatPercent(finding.shareOfStepPercent)}
              </span>
            </div>
            <div>
              <span class="figure-label">Fixing it saves</span>
              <span class="figure">
                {saves === "" ? (
                  <span class="muted">nothing on its own</span>
                ) : (
                  <>
                    {saves} <strong class="good">{speedup}</strong>
                  </>
                )}
              </span>
            </div>
          </>
        )}
        <div>
          <span class="figure-label">Confidence</span>
          <span class="figure">
            <Confidence level={finding.confidence} />
          </span>
        </div>
      </div>
      {finding.try.text && (
        <div class="finding-try">
          <p>
            <strong>Try:</strong> {finding.try.text}
          </p>
          {finding.try.code && (
            <div class="code-line">
              <code>{finding.try.code}</code>
              <CopyButton label="Copy" text={() => finding.try.code} class="button" />
            </div>
          )}
        </div>
      )}
      {finding.at !== "" && (
        <p class="finding-lines">
          <strong>In your program:</strong> <code>{finding.at}</code>
        </p>
      )}
      <Evidence finding={finding} />
      {finding.confirmBy && <p class="muted">To confirm: {finding.confirmBy}.</p>}
      <button class="link" aria-expanded={explained} onClick={() => setExplained(!explained)}>
        {explained ? "Hide the explanation" : "Explain this"}
      </button>
      {explained && <Explanation trace={props.trace} id={finding.id} />}
    </article>
  );
}

function Confidence(props: { level: string }): JSX.Element {
  const filled = { low: 1, medium: 2, high: 3 }[props.level] ?? 0;
  return (
    <span class="confidence">
      <span aria-hidden="true">{"●".repeat(filled) + "○".repeat(3 - filled)}</span> {props.level}
    </span>
  );
}

function Evidence(props: { finding: Finding }): JSX.Element | null {
  const { events, ranges } = props.finding.evidence;
  if (events.length === 0 && ranges.length === 0) return null;
  return (
    <p class="evidence">
      <strong>Evidence:</strong>{" "}
      {events.length > 0
        ? events.slice(0, kEvidence).map((event) => (
            <button
              class="link chip"
              key={eventRef(event)}
              title={event.name}
              onClick={() =>
                openInTimeline({ ref: eventRef(event), startNs: event.startNs, durationNs: event.durationNs })
              }
            >
              {truncateMiddle(shortName(event.name), 44)} <span class="muted">at {formatDuration(event.startNs)}</span>
            </button>
          ))
        : ranges.slice(0, kEvidence).map((range) => (
            <button
              class="link chip"
              key={range.startNs}
              onClick={() => openInTimeline({ startNs: range.startNs, durationNs: range.endNs - range.startNs })}
            >
              {range.endNs - range.startNs > 1 ? formatDuration(range.endNs - range.startNs) : "moment"}{" "}
              <span class="muted">at {formatDuration(range.startNs)}</span>
            </button>
          ))}
    </p>
  );
}

function Explanation(props: { trace: TraceClient; id: string }): JSX.Element {
  const answer = useAnswer((signal) => props.trace.explain(props.id, signal), [props.trace, props.id]);
  return (
    <div class="explanation">
      <Answered answer={answer}>
        {({ text }) =>
          text
            .trim()
            .split(/\n\s*\n/)
            .map((paragraph) => <p key={paragraph}>{paragraph.replaceAll("\n", " ")}</p>)
        }
      </Answered>
    </div>
  );
}
