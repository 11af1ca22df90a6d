// The keys, on `?`. A native dialog: focus stays inside and Esc closes it.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { kTimelineKeys } from "../timeline/keys";

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
              <th scope="row">
                {keys.split(" ").map((key) => (key === "or" ? " or " : <kbd key={key}>{key}</kbd>))}
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <form method="dialog">
        <button class="button">Close</button>
      </form>
    </dialog>
  );
}
