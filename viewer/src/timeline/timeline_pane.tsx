// The timeline: lanes of threads and streams over time.

import type { JSX } from "preact";
import type { PaneProps } from "../app/pane";
import { Answered, useAnswer } from "../app/answer";

export function TimelinePane(props: PaneProps): JSX.Element {
  const lanes = useAnswer((signal) => props.trace.lanes(signal), [props.trace]);
  return <Answered answer={lanes}>{(value) => <p>{value.lanes.length} lanes</p>}</Answered>;
}
