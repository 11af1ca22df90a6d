// The verdict in plain words, and how long a step takes with and without the profiler.

import type { JSX } from "preact";
import type { Diagnosis, Overview } from "../../data/answers";
import { formatDuration, formatPercent } from "../../text/format";
import { capitalize } from "./diagnosis";
import "./verdict_card.css";

export function VerdictCard(props: { overview: Overview; diagnosis: Diagnosis | null }): JSX.Element {
  const { verdict } = props.overview;
  const { diagnosis } = props;
  return (
    <section class={`card verdict ${diagnosis?.healthy ? "is-healthy" : ""}`} aria-labelledby="verdict-title">
      <div class="verdict-words">
        <h1 id="verdict-title">
          <span class="badge">{capitalize(verdict.label)}</span> {capitalize(verdict.reason)}
        </h1>
        {verdict.meaning && <p>{verdict.meaning}</p>}
        {diagnosis?.step.undecided && (
          <p class="warn">Too close to call: profiling overhead may have made the difference.</p>
        )}
      </div>
      <StepFigures overview={props.overview} diagnosis={diagnosis} />
    </section>
  );
}

function StepFigures(props: { overview: Overview; diagnosis: Diagnosis | null }): JSX.Element | null {
  const { stepNs, recordedStepNs } = props.overview.verdict;
  const isLight = props.overview.verdict.recordedSteps === "light";
  const step = props.diagnosis?.step;
  if (!stepNs) return null;
  const recorded = recordedStepNs ?? stepNs;
  const differs = Math.abs(recorded - stepNs) > 0.005 * recorded;
  const scale = 100 / Math.max(recorded, stepNs);
  return (
    <div class="verdict-figures">
      <div class="step-figure">
        <span class="figure-label">A step takes</span>
        <span class="big">{formatDuration(stepNs)}</span>
        <span class="step-bar">
          <span class="true" style={{ width: `${stepNs * scale}%` }} />
        </span>
      </div>
      {differs && (
        <div class="step-figure">
          <span class="figure-label">{isLight ? "in light steps" : "while recording"}</span>
          <span class="big muted">{formatDuration(recorded)}</span>
          <span class="step-bar">
            <span class="recorded" style={{ width: `${recorded * scale}%` }} />
          </span>
        </div>
      )}
      {step && (
        <p class="muted">
          {differs && step.lowNs < step.highNs
            ? `Without the profiler ${formatDuration(step.lowNs)} to ${formatDuration(step.highNs)}, ${step.knownFromText}. `
            : ""}
          {step.deviceBusyPercent > 0 && `The device is busy ${formatPercent(step.deviceBusyPercent)} of a step. `}
          {step.judgedSteps > 0 && `${step.judgedSteps} ${isLight ? "light " : ""}${step.judgedSteps === 1 ? "step" : "steps"} analyzed.`}
        </p>
      )}
    </div>
  );
}
