// What steps and runs cost: money from the hourly price, energy and CO2 where the trace has power readings.

import type { JSX } from "preact";
import { useUrl } from "../../page/link";
import type { PaneProps } from "../../page/pane";
import { NumberField } from "../../parts/fields";
import { ReportView } from "../../parts/report/report_view";

export function CostView(props: PaneProps): JSX.Element {
  const [price, setPrice] = useUrl("more.cost.price");
  const [samples, setSamples] = useUrl("more.cost.samples");
  const [steps, setSteps] = useUrl("more.cost.steps");
  const [grams, setGrams] = useUrl("more.cost.grams");
  const params: Record<string, number> = {};
  const add = (name: string, text: string) => {
    const value = Number(text);
    if (text !== "" && Number.isFinite(value) && value > 0) params[name] = value;
  };
  add("price_per_hour", price);
  add("grams_per_kwh", grams);
  add("samples_per_step", samples);
  add("steps_per_run", steps);
  return (
    <>
      <form class="toolbar" onSubmit={(event) => event.preventDefault()}>
        <NumberField label="Price per hour" value={price} onChange={setPrice} step="0.01" />
        <NumberField label="Samples per step" value={samples} onChange={setSamples} step="1" />
        <NumberField label="Steps per run" value={steps} onChange={setSteps} step="1" />
        <NumberField label="CO2 (g/kWh)" value={grams} onChange={setGrams} step="1" />
      </form>
      <ReportView
        id="more.cost"
        trace={props.trace}
        verb="cost"
        params={params}
        intro={price === "" ? "Enter the hourly price of this machine to see what a step costs." : "What a step costs."}
      />
    </>
  );
}
