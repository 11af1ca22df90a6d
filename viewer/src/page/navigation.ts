// Going from one pane to another, and to a place in the timeline.

import { signal } from "@preact/signals";
import { setUrl } from "./link";

// A place in the timeline, by whatever is known: a ref selects that slice; a start with a duration is shown and marked as a
// range; a step is fitted to the screen; of the slices with a name the longest is selected.
export interface TimelinePlace {
  startNs?: number;
  durationNs?: number;
  ref?: string;
  name?: string;
  step?: number;
  lane?: number;
}

// Whether the shown trace has light and full steps: two timelines. The link's `steps` is "full" for the second.
export const hasLightSteps = signal(false);

// The timeline goes there and resets it to null.
export const timelinePlace = signal<TimelinePlace | null>(null);

export function openInTimeline(place: TimelinePlace): void {
  timelinePlace.value = place;
  openPane("timeline", { steps: hasLightSteps.value ? "full" : null });
}

export function openPane(id: string, params: Record<string, string | null> = {}): void {
  setUrl({ pane: id, ...params }, { history: true });
}
