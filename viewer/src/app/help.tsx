// The help dialog, opened by `?`: what each pane has to say about keys and mouse. A native dialog: it traps focus, and Esc
// closes it.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Pane } from "../page/pane";
import "./help.css";

export function HelpDialog(props: { panes: readonly Pane[]; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="help" ref={dialog} onClose={props.onClose} aria-label="Help">
      {props.panes.map(({ id, help: Help }) => Help && <Help key={id} />)}
      <form method="dialog">
        <button class="button">Close</button>
      </form>
    </dialog>
  );
}
