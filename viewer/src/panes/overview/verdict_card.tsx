// The verdict in plain words, with the true step beside the recorded one.

import type { JSX } from "preact";
import type { Diagnosis, Overview } from "../../data/answers";
import { formatDuration, formatShare } from "../../text/format";
import { isHealthy, sentence, splitVerdict } from "./diagnosis";
import "./verdict_card.css";

// What each limit means for somebody who reads it for the first time.
const kMeaning: Record<string, string> = {
  overhead: "The GPU is fast enough; the Python program that feeds it is not. A faster GPU would not help.",
  compute: "The GPU's arithmetic is the limit: that is where a well-tuned program should be.",
  memory: "The GPU spends its time moving data to and from its memory rather than computing.",
  input: "The model waits for data: loading and preparing batches is slower than training on them.",
  communication: "The GPUs wait for each other: exchanging data takes longer than computing.",
};

const kMeaningWithoutDevice: Record<string, string> = {
  overhead: "Calling the operators costs more than what they compute: give each of them more to do.",
  compute: "The CPU's arithmetic is the limit.",
  memory: "The CPU spends its time moving data to and from its memory rather than computing.",
};

const kKnownFrom: Record<string, string> = {
  "timed without recording": "timed on steps that were not recorded",
  "measured while recording": "by the cost of recording as measured in that run",
  estimated: "estimated by taking the usual cost of recording out",
};

export function VerdictCard(props: { overview: Overview; diagnosis: Diagnosis | null }): JSX.Element {
  const { verdict } = props.overview;
  const { diagnosis } = props;
  const { head, rest } = splitVerdict(verdict.text);
  const [what] = verdict.bound === "unknown" ? ["what limits the program cannot be told from this trace"] : rest.split(";");
  const healthy = diagnosis !== null && isHealthy(diagnosis);
  const meanings = props.overview.deviceBusy.length > 0 ? kMeaning : { ...kMeaning, ...kMeaningWithoutDevice };
  const meaning = Object.hasOwn(meanings, verdict.bound) ? meanings[verdict.bound] : "";
  return (
    <section class={`card verdict ${healthy ? "is-healthy" : ""}`} aria-labelledby="verdict-title">
      <div class="verdict-words">
        <h1 id="verdict-title">
          {head ? <span class="badge">{sentence(head)}</span> : null} {sentence(what)}
        </h1>
        {meaning && <p>{meaning}</p>}
        {diagnosis?.step.undecided && (
          <p class="warn">The limit is too close to call: the cost of recording may have made the difference.</p>
        )}
      </div>
      <StepFigures overview={props.overview} diagnosis={diagnosis} />
    </section>
  );
}

function StepFigures(props: { overview: Overview; diagnosis: Diagnosis | null }): JSX.Element | null {
  const { stepNs, recordedStepNs } = props.overview.verdict;
  const step = props.diagnosis?.step;
  if (!stepNs) return null;
  const recorded = recordedStepNs ?? stepNs;
  const differs = Math.abs(recorded - stepNs) > 0.005 * recorded;
  const scale = 100 / Math.max(recorded, stepNs);
  // The range is that of the mean step; the figures are those of the usual one.
  const usual = step && step.stepNs > 0 ? stepNs / step.stepNs : 1;
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
          <span class="figure-label">while recording</span>
          <span class="big muted">{formatDuration(recorded)}</span>
          <span class="step-bar">
            <span class="recorded" style={{ width: `${recorded * scale}%` }} />
          </span>
        </div>
      )}
      {step && (
        <p class="muted">
          {differs && step.lowNs < step.highNs
            ? `Without the profiler ${formatDuration(step.lowNs * usual)} to ${formatDuration(step.highNs * usual)}, ${kKnownFrom[step.knownFrom] ?? step.knownFrom}. `
            : ""}
          {step.deviceBusyNs > 0 && `The device works ${formatShare(Math.min(1, step.deviceBusyNs / stepNs))} of a step. `}
          {step.judgedSteps > 0 && `${step.judgedSteps} ${step.judgedSteps === 1 ? "step" : "steps"} judged.`}
        </p>
      )}
    </div>
  );
}
