// The cards beside the findings: device utilization, what the trace cannot answer, and the environment.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Overview } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import { openPane } from "../../page/navigation";
import { useAnswer } from "../../parts/answer";
import { ShareBar } from "../../parts/share_bar";
import { StepsLabel } from "../../parts/steps/steps_label";
import { formatDuration, formatPercent } from "../../text/format";
import { withDetails } from "../../text/notes";
import "./side_cards.css";

const kShownAtFirst = 4;

export function DeviceBusy(props: { trace: TraceClient; overview: Overview }): JSX.Element | null {
  const devices = props.overview.deviceBusy;
  if (devices.length === 0 && props.overview.verdict.state !== "judged") return null; // stacks and dumps say nothing about devices
  return (
    <section class="card">
      <h2>
        Device utilization <StepsLabel steps={devices[0]?.recordedSteps} />
      </h2>
      {devices.length === 0 ? (
        <p class="muted">No GPU work in this trace: everything here is about the CPU.</p>
      ) : (
        devices.map(({ device, name, busyNs, windowNs }) => {
          const percent = windowNs > 0 ? (100 * busyNs) / windowNs : 0;
          return (
            <div class="device-busy" key={device}>
              <div>
                {name} <strong>{formatPercent(percent)} busy</strong>
              </div>
              <ShareBar percent={percent} class="full" />
              <div class="muted">
                {formatDuration(busyNs)} of {formatDuration(windowNs)}, as recorded
              </div>
            </div>
          );
        })
      )}
      {devices.length > 0 && <TensorCores trace={props.trace} />}
      {devices.length > 0 && (
        <button class="link" onClick={() => openPane("more", { "more.report": "idle" })}>
          Why is it idle?
        </button>
      )}
    </section>
  );
}

// Share of matrix kernel time, where the trace has it.
function TensorCores(props: { trace: TraceClient }): JSX.Element | null {
  const roofline = useAnswer((signal) => props.trace.report("roofline", {}, signal), [props.trace]);
  const fact = roofline.value?.facts.find(({ name }) => name === "tensor_core_percent");
  if (!fact || typeof fact.value !== "number") return null;
  return (
    <div class="device-busy">
      <div>
        {fact.label} <strong>{formatPercent(fact.value)}</strong> <StepsLabel steps={roofline.value?.recordedSteps} />
      </div>
      <ShareBar percent={fact.value} class="full" />
    </div>
  );
}

export function Missing(props: { missing: Overview["missing"] }): JSX.Element | null {
  const { missing } = props;
  const [all, setAll] = useState(false);
  if (missing.length === 0) return null;
  const shown = all ? missing : missing.slice(0, kShownAtFirst);
  return (
    <section class="card">
      <h2>What this trace cannot answer</h2>
      <ul class="missing">
        {shown.map(({ question, reason, remedy }) => (
          <li key={question}>
            <strong>{question}</strong>
            <span class="muted">: {[reason, remedy].filter((text) => text !== "").join("; ")}</span>
          </li>
        ))}
      </ul>
      {missing.length > shown.length && (
        <button class="link" onClick={() => setAll(true)}>
          {missing.length - shown.length} more
        </button>
      )}
    </section>
  );
}

export function Environment(props: { overview: Overview }): JSX.Element {
  return (
    <section class="card">
      <h2>Environment</h2>
      <dl class="environment">
        {withDetails(props.overview.environment, ([label]) => label).map(({ item: [label, value], details }) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              {value}
              {details.map(([name, text]) => (
                <div class="muted" key={name}>
                  {name.trim()} {text}
                </div>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <button class="link" onClick={() => openPane("more", { "more.report": "info" })}>
        Trace details
      </button>
    </section>
  );
}
