// The first screen: the bottleneck, what to do about it, and where time and memory went.

import type { JSX } from "preact";
import type { Diagnosis, Overview, TopRow } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import { openInTimeline, openPane } from "../../page/navigation";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered, ErrorBox, Loading, useAnswer } from "../../parts/answer";
import { MemoryChart } from "../../parts/memory/memory_chart";
import { Notes } from "../../parts/notes";
import { ShareBar } from "../../parts/share_bar";
import { StepBars } from "../../parts/steps/step_bars";
import { StepsLabel } from "../../parts/steps/steps_label";
import { formatDuration, formatNumber, formatPercent } from "../../text/format";
import { shortName } from "../../text/names";
import { capitalize } from "./diagnosis";
import { FindingCard } from "./finding_card";
import { DeviceBusy, Environment, Missing } from "./side_cards";
import { VerdictCard } from "./verdict_card";
import "./overview.css";

const kCurveBins = 600;

export const overviewPane: Pane = { id: "overview", title: "Overview", component: OverviewPane };

function OverviewPane(props: PaneProps): JSX.Element {
  const { trace } = props;
  const overview = useAnswer((signal) => trace.overview(signal), [trace]);
  const diagnosis = useAnswer((signal) => trace.diagnose(signal), [trace]);
  if (overview.state === "failed") return <ErrorBox text={overview.error} />;
  if (!overview.value) return <Loading text="Analyzing the trace…" />;
  const found = overview.value;
  return (
    <div class="page overview">
      <VerdictCard overview={found} diagnosis={diagnosis.value} />
      <div class="overview-columns">
        <div class="stack">
          <Answered answer={diagnosis}>{(value) => <Findings trace={trace} diagnosis={value} />}</Answered>
          <LinesCard lines={diagnosis.value?.lines} />
          {found.steps.parts.length > 0 && <StepsCard steps={found.steps} />}
          <div class="pair">
            {(found.topOps.length > 0 || found.topCollectives.length === 0) && (
              <TopList
                title="Top operators"
                by={found.topOpsBy}
                rows={found.topOps}
                pane="ops"
                empty={
                  found.deviceBusy.length > 0
                    ? "No device work belongs to an operator of this trace. See the kernels."
                    : "No operators in this trace."
                }
              />
            )}
            {found.topCollectives.length > 0 && (
              <TopList title="Collectives" by="time" rows={found.topCollectives} pane="timeline" empty="" />
            )}
            {found.topKernels.length > 0 && (
              <TopList title="Top kernels" by="device time" rows={found.topKernels} pane="kernels" empty="" />
            )}
          </div>
          <MemoryCard trace={trace} />
        </div>
        <aside class="stack">
          <DeviceBusy trace={trace} overview={found} />
          <Missing missing={found.missing} />
          <Environment overview={found} />
        </aside>
      </div>
    </div>
  );
}

function Findings(props: { trace: TraceClient; diagnosis: Diagnosis }): JSX.Element {
  const { diagnosis } = props;
  const { headline, why } = diagnosis;
  const isAbove = why === "" && diagnosis.findings.length > 0;
  return (
    <section class="stack" aria-label="Findings">
      {headline !== "" && !isAbove && (
        <div class={diagnosis.healthy ? "card healthy" : "card"}>
          <h2>{headline}</h2>
          {why !== "" && <p>{capitalize(why)}.</p>}
        </div>
      )}
      {isAbove && (
        <h2 class="section-title">
          {headline} <StepsLabel />
        </h2>
      )}
      {diagnosis.findings.map((finding, at) => (
        <FindingCard key={finding.id} trace={props.trace} finding={finding} number={at + 1} />
      ))}
      <Notes notes={diagnosis.notes} />
    </section>
  );
}

function LinesCard(props: { lines?: Diagnosis["lines"] }): JSX.Element | null {
  const { lines } = props;
  if (!lines || lines.largest.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Lines of the program{" "}
        <span class="muted subtitle">by {lines.of === "device" ? "device time" : "time of a step"}</span>{" "}
        <StepsLabel asRecorded />
      </h2>
      <table class="top-list">
        <colgroup>
          <col />
          <col class="top-count" />
          <col class="top-total" />
        </colgroup>
        <thead class="sr-only">
          <tr>
            <th scope="col">Line</th>
            <th scope="col">Share</th>
            <th scope="col">Per step</th>
          </tr>
        </thead>
        <tbody>
          {lines.largest.map((place) => (
            <tr key={place.line + place.calledFrom}>
              <td class="text" title={place.line}>
                {place.name} {place.mostIn && <span class="muted">{place.mostIn}</span>}
                <ShareBar percent={place.sharePercent} class="under" />
              </td>
              <td class="number muted">{formatPercent(place.sharePercent)}</td>
              <td class="number">{formatDuration(place.timeNs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button class="link" onClick={() => openPane("more", { "more.report": "lines" })}>
        Show all
      </button>
    </section>
  );
}

function StepsCard(props: { steps: Overview["steps"] }): JSX.Element {
  return (
    <section class="card">
      <h2>
        Where the time of each step goes <StepsLabel steps={props.steps.recordedSteps} asRecorded />
      </h2>
      <StepBars steps={props.steps} />
      <p class="muted hint">
        {props.steps.recordedSteps !== "light" && "As recorded. "}Click a bar to open that step in the timeline
        {props.steps.rows.length > 1 && (
          <>
            , or{" "}
            <button class="link" onClick={() => openPane("steps")}>
              compare two steps
            </button>
          </>
        )}
        .
      </p>
    </section>
  );
}

function TopList(props: { title: string; by: string; rows: TopRow[]; pane: string; empty: string }): JSX.Element {
  const whole = props.rows.reduce((most, [, totalNs]) => Math.max(most, totalNs), 0);
  return (
    <section class="card">
      <h2>
        {props.title} <span class="muted subtitle">by {props.by}</span> <StepsLabel />
      </h2>
      {props.rows.length === 0 ? (
        <p class="muted">{props.empty}</p>
      ) : (
        <table class="top-list">
          <colgroup>
            <col />
            <col class="top-count" />
            <col class="top-total" />
          </colgroup>
          <thead class="sr-only">
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Calls</th>
              <th scope="col">Total</th>
            </tr>
          </thead>
          <tbody>
            {props.rows.map(([name, totalNs, count]) => (
              <tr key={name}>
                <td class="text">
                  <button
                    class="link cell-link"
                    title={`${name}\nShow the longest call in the timeline`}
                    onClick={() => openInTimeline({ name })}
                  >
                    {shortName(name)}
                  </button>
                  <ShareBar percent={whole > 0 ? (100 * totalNs) / whole : 0} class="under" />
                </td>
                <td class="number muted">{formatNumber(count)}×</td>
                <td class="number">{formatDuration(totalNs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <button class="link" onClick={() => openPane(props.pane)}>
        Show all
      </button>
    </section>
  );
}

function MemoryCard(props: { trace: TraceClient }): JSX.Element | null {
  const curve = useAnswer(
    (signal) => props.trace.memoryCurve({ bins: kCurveBins }, signal),
    [props.trace],
  );
  if (!curve.value || curve.value.allocatedBytes.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Memory <span class="muted subtitle">{curve.value.device}</span>
      </h2>
      <MemoryChart curve={curve.value} onClick={(atNs) => openPane("memory", { "memory.at": String(Math.round(atNs)) })} />
      <p class="muted hint">
        Click a point in time to see what was allocated then, or{" "}
        <button class="link" onClick={() => openPane("memory", { "memory.at": null })}>
          look at the peak
        </button>
        .
      </p>
    </section>
  );
}
