// What the sections of the panel share: a heading with a close button, and facts as labeled values.

import type { ComponentChildren, JSX } from "preact";
import "./panel.css";

export const kNotStored = "This report has no details here: open the trace with `firelane view`.";

export function Section(props: { title: string; onClose?: () => void; children: ComponentChildren }): JSX.Element {
  return (
    <section class="timeline-section">
      <header>
        <h2>{props.title}</h2>
        {props.onClose && (
          <button
            class="icon-button"
            aria-label={`Close ${props.title.toLowerCase()}`}
            title="Close (Esc)"
            onClick={props.onClose}
          >
            ✕
          </button>
        )}
      </header>
      {props.children}
    </section>
  );
}

export function Facts(props: { rows: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="slice-facts">
      {props.rows.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
