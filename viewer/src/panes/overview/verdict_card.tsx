// The verdict in plain words, and how long a step takes with and without the profiler.

import type { JSX } from "preact";
import type { Diagnosis, Overview } from "../../data/answers";
import { formatDuration, formatShare } from "../../text/format";
import { isHealthy, capitalize, splitVerdict } from "./diagnosis";
import "./verdict_card.css";

// What each kind of bottleneck means, for someone who reads it for the first time.
const kMeaning: Record<string, string> = {
  overhead: "The GPU is fast enough; the Python program that feeds it is not. A faster GPU would not help.",
  compute: "GPU compute is the bottleneck, which is where a well-tuned program should be.",
  memory: "Bound by memory bandwidth: the GPU spends its time moving data rather than computing.",
  input: "The model waits for data: loading and preparing batches is slower than training on them.",
  communication: "The GPUs wait for each other: exchanging data takes longer than computing.",
};

const kMeaningWithoutDevice: Record<string, string> = {
  overhead: "Calling operators takes longer than the work inside them: give each call more to do.",
  compute: "CPU compute is the bottleneck.",
  memory: "Bound by memory bandwidth: the CPU spends its time moving data rather than computing.",
};

const kKnownFrom: Record<string, string> = {
  "timed without recording": "timed on steps without recording",
  "measured while recording": "from the profiling overhead measured in that run",
  estimated: "estimated by subtracting the typical profiling overhead",
};

export function VerdictCard(props: { overview: Overview; diagnosis: Diagnosis | null }): JSX.Element {
  const { verdict } = props.overview;
  const { diagnosis } = props;
  const { head, rest } = splitVerdict(verdict.text);
  const [what] = verdict.bound === "unknown" ? ["this trace does not show what limits the program"] : rest.split(";");
  const healthy = diagnosis !== null && isHealthy(diagnosis);
  const meanings = props.overview.deviceBusy.length > 0 ? kMeaning : { ...kMeaning, ...kMeaningWithoutDevice };
  const meaning = Object.hasOwn(meanings, verdict.bound) ? meanings[verdict.bound] : "";
  return (
    <section class={`card verdict ${healthy ? "is-healthy" : ""}`} aria-labelledby="verdict-title">
      <div class="verdict-words">
        <h1 id="verdict-title">
          {head ? <span class="badge">{capitalize(head)}</span> : null} {capitalize(what)}
        </h1>
        {meaning && <p>{meaning}</p>}
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
  const step = props.diagnosis?.step;
  if (!stepNs) return null;
  const recorded = recordedStepNs ?? stepNs;
  const differs = Math.abs(recorded - stepNs) > 0.005 * recorded;
  const scale = 100 / Math.max(recorded, stepNs);
  // The range is for the average step; scale it to the median step that is shown.
  const scaleToMedian = step && step.stepNs > 0 ? stepNs / step.stepNs : 1;
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
            ? `Without the profiler ${formatDuration(step.lowNs * scaleToMedian)} to ${formatDuration(step.highNs * scaleToMedian)}, ${kKnownFrom[step.knownFrom] ?? step.knownFrom}. `
            : ""}
          {step.deviceBusyNs > 0 && `The device is busy ${formatShare(Math.min(1, step.deviceBusyNs / stepNs))} of a step. `}
          {step.judgedSteps > 0 && `${step.judgedSteps} ${step.judgedSteps === 1 ? "step" : "steps"} analyzed.`}
        </p>
      )}
    </div>
  );
}
