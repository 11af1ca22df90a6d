// A tooltip over a chart, on the side of the pointer where there is more room.

import type { ComponentChildren, JSX } from "preact";
import "./tip.css";

// In px from the top left of a chart `width` px wide.
export function Tip(props: { x: number; top: number; width: number; gap?: number; children: ComponentChildren }): JSX.Element {
  const { x, top, width, gap = 8 } = props;
  const side = x > width / 2 ? { right: `${width - x + gap}px` } : { left: `${x + gap}px` };
  return (
    <div class="tip" style={{ top: `${top}px`, ...side }}>
      {props.children}
    </div>
  );
}
