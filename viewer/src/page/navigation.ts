// Going from one pane to another, and to a place in the timeline.

import { signal } from "@preact/signals";
import type { OfSteps } from "../data/answers";
import { setUrl, urlState } from "./link";

// A place in the timeline, by whatever is known: a ref selects that slice; a start with a duration is shown and marked as a
// range; a step is fitted to the screen; of the slices with a name the longest is selected.
export interface TimelinePlace {
  startNs?: number;
  durationNs?: number;
  ref?: string;
  name?: string;
  step?: number;
  lane?: number;
  steps?: OfSteps; // which timeline, where the trace has two: that of the full steps unless it says light
}

// Whether the shown trace has light and full steps: two timelines. The link's `steps` is "full" for the second. Null: not known
// yet, and then "full" does no harm.
export const hasLightSteps = signal<boolean | null>(null);

// The timeline goes there and resets it to null.
export const timelinePlace = signal<TimelinePlace | null>(null);

export function openInTimeline(place: TimelinePlace): void {
  timelinePlace.value = place;
  openPane("timeline", timelineOf(place.steps === "light" || hasLightSteps.value === false ? null : "full"));
}

// A link's keys for the timeline of these steps. Positions in one timeline mean nothing in the other.
export function timelineOf(steps: "full" | null): Record<string, string | null> {
  const changes: Record<string, string | null> = { steps };
  if ((urlState.value.steps ?? null) === steps) return changes;
  for (const key of Object.keys(urlState.value)) if (key.startsWith("timeline.")) changes[key] = null;
  return changes;
}

export function openPane(id: string, params: Record<string, string | null> = {}): void {
  setUrl({ pane: id, ...params }, { history: true });
}
