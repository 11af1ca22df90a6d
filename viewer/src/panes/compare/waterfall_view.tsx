// The waterfall as a table: each part with both sides, its change, and where the change takes the step.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Table } from "../../data/answers";
import { useUrl } from "../../page/link";
import { Checkbox } from "../../parts/fields";
import { formatChange, formatDuration } from "../../text/format";
import { partsOf, waterfall, withoutSmall } from "./waterfall";
import "./waterfall.css";

export function WaterfallView(props: { table: Table }): JSX.Element {
  const [all, setAll] = useUrl("compare.parts");
  const { beforeNs, afterNs, bars, axis } = useMemo(() => {
    const parts = partsOf(props.table);
    return waterfall(all === "" ? withoutSmall(parts) : parts);
  }, [props.table, all]);
  const percent = (ns: number) => (100 * (ns - axis[0])) / (axis[1] - axis[0]);
  return (
    <section class="card" aria-labelledby="compare-parts">
      <div class="toolbar">
        <h2 class="table-title" id="compare-parts">
          Where the difference is
        </h2>
        <Checkbox label="all parts" value={all !== ""} onChange={(on) => setAll(on ? "all" : "")} />
      </div>
      <table class="waterfall" aria-label="Parts of a step on both sides">
        <thead>
          <tr>
            <th scope="col" class="text">
              Part of a step
            </th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
            <th scope="col">Change</th>
            <th class="waterfall-axis" aria-hidden="true">
              <span>{formatDuration(axis[0])}</span>
              <span>{formatDuration(axis[1])}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <TotalRow name="step before" ns={beforeNs} width={percent(beforeNs)} />
          {bars.map((bar) => {
            const changeNs = bar.afterNs - bar.beforeNs;
            const left = percent(Math.min(bar.fromNs, bar.toNs));
            const width = Math.abs(percent(bar.toNs) - percent(bar.fromNs));
            return (
              <tr key={bar.name} title={bar.meaning}>
                <th scope="row" class="text">
                  {bar.name}
                </th>
                <td>{formatDuration(bar.beforeNs)}</td>
                <td>{formatDuration(bar.afterNs)}</td>
                <td class={changeNs > 0 ? "slower" : changeNs < 0 ? "faster" : ""}>{formatChange(changeNs)}</td>
                <td class="waterfall-track" aria-hidden="true">
                  <span
                    class={changeNs > 0 ? "bar slower" : "bar faster"}
                    style={{ left: `${left}%`, width: `${width}%` }}
                  />
                </td>
              </tr>
            );
          })}
          <TotalRow name="step after" ns={afterNs} width={percent(afterNs)} change={afterNs - beforeNs} />
        </tbody>
      </table>
      <p class="muted hint">
        Along the chain of dependencies that decides how long a step takes; recording is taken out. The changes add up to the
        difference.
      </p>
    </section>
  );
}

function TotalRow(props: { name: string; ns: number; width: number; change?: number }): JSX.Element {
  const isBefore = props.change === undefined;
  return (
    <tr class="total">
      <th scope="row" class="text">
        {props.name}
      </th>
      <td>{isBefore ? formatDuration(props.ns) : ""}</td>
      <td>{isBefore ? "" : formatDuration(props.ns)}</td>
      <td>{isBefore ? "" : formatChange(props.change!)}</td>
      <td class="waterfall-track" aria-hidden="true">
        <span class="bar total" style={{ left: "0", width: `${props.width}%` }} />
      </td>
    </tr>
  );
}
