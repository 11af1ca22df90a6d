// Which traces are compared: both sides by name, a button that swaps them, and a choice for each trace where there are more.

import type { JSX } from "preact";
import type { TraceList } from "../../data/answers";
import type { Sides } from "../../data/set_client";
import { setUrl } from "../../page/link";
import { keysOf, moved, type Place, placeOf, sideName } from "./sides";

export function SideChooser(props: { list: TraceList; sides: Sides }): JSX.Element {
  const { list, sides } = props;
  const swap = () => setUrl(keysOf({ before: sides.after, after: sides.before }), { history: true });
  return (
    <section class="card" aria-label="What is compared">
      <div class="sides">
        <span class="side-name before">
          <span class="muted">Before</span> <strong>{sideName(sides.before, list.traces)}</strong>
        </span>
        <span class="side-name after">
          <span class="muted">After</span> <strong>{sideName(sides.after, list.traces)}</strong>
        </span>
        <button class="button" onClick={swap} title="Before becomes after, and after before">
          Swap
        </button>
      </div>
      {list.traces.length > 2 && (
        <details>
          <summary>Choose traces</summary>
          <table class="side-list">
            <tbody>
              {list.traces.map((trace) => (
                <tr key={trace.id}>
                  <th scope="row">{trace.name}</th>
                  <td>
                    <SideSelect name={trace.name} place={placeOf(sides, trace.id)} change={(to) => moved(sides, trace.id, to)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </section>
  );
}

const kPlaces: [Place, string][] = [
  ["before", "before"],
  ["after", "after"],
  ["neither", "not compared"],
];

// A move that would leave a side empty cannot be chosen.
function SideSelect(props: {
  name: string;
  place: Place;
  change: (to: Place) => Record<string, string> | null;
}): JSX.Element {
  return (
    <select
      class="field"
      aria-label={`Side of ${props.name}`}
      value={props.place}
      onChange={(event) => {
        const keys = props.change(event.currentTarget.value as Place);
        if (keys) setUrl(keys, { history: true });
      }}
    >
      {kPlaces.map(([value, text]) => (
        <option key={value} value={value} disabled={value !== props.place && props.change(value) === null}>
          {text}
        </option>
      ))}
    </select>
  );
}
