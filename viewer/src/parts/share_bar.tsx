// A bar that shows a percentage.

import type { JSX } from "preact";
import "./share_bar.css";

export function ShareBar(props: { percent: number; class?: string }): JSX.Element {
  const width = Math.max(0, Math.min(100, props.percent));
  return (
    <span class={`share-bar ${props.class ?? ""}`} aria-hidden="true">
      <span style={{ width: `${width}%` }} />
    </span>
  );
}
