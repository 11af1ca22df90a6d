// What any pane can ask the shell to do.

import { signal } from "@preact/signals";
import { setUrl } from "./link";

// A place in the timeline. Give what is known: a ref selects that slice; a start with a duration is shown and marked; a step
// is shown whole; a name is searched for exactly (the longest is selected).
export interface TimelinePlace {
  startNs?: number;
  durationNs?: number;
  ref?: string;
  name?: string;
  step?: number;
  lane?: number;
}

// The timeline takes the place and sets it back to null.
export const timelinePlace = signal<TimelinePlace | null>(null);

export function openInTimeline(place: TimelinePlace): void {
  timelinePlace.value = place;
  openPane("timeline");
}

export function openPane(id: string, params: Record<string, string | null> = {}): void {
  setUrl({ pane: id, ...params }, { history: true });
}
