import { beforeEach, expect, test } from "vitest";
import { formatFragment, urlState } from "./link";
import { hasLightSteps, openInTimeline, timelinePlace } from "./navigation";

const link = () => formatFragment(urlState.value);

beforeEach(() => {
  urlState.value = {};
  timelinePlace.value = null;
  hasLightSteps.value = null;
});

test("a place opens in the timeline of the steps that it is from", () => {
  hasLightSteps.value = true;
  openInTimeline({ step: 22 });
  expect(link()).toBe("#pane=timeline&steps=full");
  openInTimeline({ step: 17, steps: "light" });
  expect(link()).toBe("#pane=timeline");
  expect(timelinePlace.value).toEqual({ step: 17, steps: "light" });
});

test("a trace without light steps has one timeline, which the link need not name", () => {
  hasLightSteps.value = false;
  openInTimeline({ step: 3 });
  expect(link()).toBe("#pane=timeline");
});

test("a place is not lost in the wrong timeline when it is clicked before light steps are known", () => {
  openInTimeline({ step: 22 });
  expect(link()).toBe("#pane=timeline&steps=full");
});

test("positions of one timeline are not taken to the other", () => {
  hasLightSteps.value = true;
  urlState.value = { pane: "more", steps: "full", "timeline.sel": "d5", "more.report": "idle" };
  openInTimeline({ startNs: 3, durationNs: 4 });
  expect(urlState.value["timeline.sel"]).toBe("d5");
  openInTimeline({ startNs: 3, durationNs: 4, steps: "light" });
  expect(link()).toBe("#more.report=idle&pane=timeline");
});
