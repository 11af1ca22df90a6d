// Steps as bars and as a table, and two of them side by side.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Overview } from "../../data/answers";
import { setUrl, useUrl } from "../../page/link";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";
import { Empty, Facts, Notes } from "../../parts/notes";
import { useReport } from "../../parts/report/report_view";
import { StepBars } from "../../parts/steps/step_bars";
import { StepsLabel } from "../../parts/steps/steps_label";
import { DescribedTable } from "../../parts/table/described_table";
import { defaultPair } from "./compare";
import { Comparison } from "./comparison";
import "./steps.css";

export const stepsPane: Pane = { id: "steps", title: "Steps", component: StepsPane };

function StepsPane(props: PaneProps): JSX.Element {
  const overview = useAnswer((signal) => props.trace.overview(signal), [props.trace]);
  return (
    <div class="page">
      <h1 class="sr-only">Steps</h1>
      <p class="intro">How long each step took and where its time went; below, two steps side by side.</p>
      <Answered answer={overview}>
        {({ steps }) =>
          steps.rows.length === 0 ? (
            <Empty
              title="No steps in this trace"
              notes={["Steps are detected from prof.step(), from the optimizer, or from repeating operators."]}
              code={"for batch in loader:\n    train(batch)\n    prof.step()"}
            />
          ) : (
            <Steps trace={props.trace} steps={steps} />
          )
        }
      </Answered>
    </div>
  );
}

function Steps(props: PaneProps & { steps: Overview["steps"] }): JSX.Element {
  const { steps } = props;
  const { answer, loadAll } = useReport(props.trace, "steps");
  const timed = useMemo(() => props.trace.of(steps.recordedSteps), [props.trace, steps.recordedSteps]);
  const pair = defaultPair(steps.rows);
  const [first, setFirst] = useUrl("steps.first", String(pair?.[0] ?? ""));
  const [second] = useUrl("steps.second", String(pair?.[1] ?? ""));
  const choose = (step: number) => setUrl({ "steps.first": second, "steps.second": String(step) });
  const left = steps.rows.find((row) => String(row.step) === first);
  const right = steps.rows.find((row) => String(row.step) === second);
  return (
    <div class="stack">
      <section class="card">
        <h2>
          Where the time of each step goes <StepsLabel steps={steps.recordedSteps} asRecorded />
        </h2>
        <StepBars steps={steps} height={230} onStep={pair ? (row) => choose(row.step) : undefined} />
        {pair && (
          <p class="muted hint">
            {steps.recordedSteps !== "light" && "As recorded. "}Click two bars to compare them below; a row of the table opens its step in the timeline.
          </p>
        )}
      </section>
      {left && right && (
        <Comparison
          trace={timed}
          steps={steps}
          first={left}
          second={right}
          onFirst={(step) => setFirst(String(step))}
          onSecond={(step) => setUrl({ "steps.second": String(step) })}
        />
      )}
      <Answered answer={answer}>
        {(report) => (
          <div class="stack">
            <Facts facts={report.facts} only={["median_ns", "min_ns", "max_ns"]} />
            {report.tables[0] && (
              <section class="card">
                <h2>
                  All steps <StepsLabel steps={report.recordedSteps} />
                </h2>
                <DescribedTable
                  id="steps"
                  table={report.tables[0]}
                  linkColumn="step"
                  steps={report.recordedSteps}
                  onAllRows={loadAll}
                  empty="The trace marks no steps: call prof.step() after each one. The steps above were detected in other ways."
                />
              </section>
            )}
            <Notes notes={report.notes} />
          </div>
        )}
      </Answered>
    </div>
  );
}
