// The keys, on `?`. A native dialog: focus stays inside and Esc closes it.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { kKindLabels, sliceColor } from "../timeline/colors";
import { kTimelineKeys } from "../timeline/keys";
import { theme } from "./theme";

// Hosts and devices both have annotations and others: named once.
const kinds = kKindLabels.filter(([, label], i) => kKindLabels.findIndex(([, other]) => other === label) === i);

export function HelpDialog(props: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="help" ref={dialog} onClose={props.onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys and mouse in the timeline</h2>
      <table>
        <tbody>
          {kTimelineKeys.map(([keys, what]) => (
            <tr key={keys}>
              <th scope="row">{keys.split(" ").map((key) => (key === "or" ? " or " : <kbd key={key}>{key}</kbd>))}</th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>Colours</h3>
      <ul class="help-legend">
        {kinds.map(([kind, label]) => (
          <li key={kind}>
            <span
              class="help-swatch"
              style={{ background: `rgb(${sliceColor(kind, label, theme.value).join(" ")})` }}
            />
            {label}
          </li>
        ))}
      </ul>
      <p class="muted help-note">
        Faded: many slices, shorter than a pixel. Hatched: work that begins or ends outside of the recording.
      </p>
      <form method="dialog">
        <button class="button">Close</button>
      </form>
    </dialog>
  );
}
