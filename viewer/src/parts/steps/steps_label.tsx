// Which steps something is about, where the shown recording has light and full ones.

import type { JSX } from "preact";
import type { OfSteps } from "../../data/answers";
import { hasLightSteps } from "../../page/navigation";
import "./steps_label.css";

export function StepsLabel(props: { steps?: OfSteps; asRecorded?: boolean }): JSX.Element | null {
  if (!hasLightSteps.value) return null;
  const isLight = props.steps === "light";
  const title = isLight
    ? "Recorded without operators: nearly as fast as unrecorded steps"
    : "Recorded with operators, which makes them longer";
  return (
    <span class="steps-label" title={title}>
      {isLight ? "light steps" : "full steps"}
      {props.asRecorded && ", as recorded"}
    </span>
  );
}
