import { expect, test } from "vitest";
import {
  interpolateViews,
  clampView,
  fitView,
  levelFor,
  panView,
  resizedView,
  revealView,
  rulerStepNs,
  timeToX,
  visibleTiles,
  xToTime,
  zoomView,
} from "./view";

const kEnd = 1_000_000;
const view = { fromNs: 200_000, toNs: 600_000 };

test("times convert to pixels and back", () => {
  expect(timeToX(view, 800, 400_000)).toBe(400);
  expect(xToTime(view, 800, timeToX(view, 800, 123_456))).toBeCloseTo(123_456);
});

test("zooming keeps the time under the pointer where it is", () => {
  const at = 300_000;
  const closer = zoomView(view, 2, at, kEnd);
  expect(closer.toNs - closer.fromNs).toBe(200_000);
  expect(timeToX(closer, 800, at)).toBeCloseTo(timeToX(view, 800, at));
});

test("zooming stops at a few ns and at a little more than the whole trace", () => {
  let v = view;
  for (let i = 0; i < 100; ++i) v = zoomView(v, 2, 300_000, kEnd);
  expect(v.toNs - v.fromNs).toBe(40);
  for (let i = 0; i < 100; ++i) v = zoomView(v, 0.5, 300_000, kEnd);
  expect(v.toNs - v.fromNs).toBeCloseTo(1.2 * kEnd);
});

test("panning does not leave the trace", () => {
  const right = panView(view, 1e12, kEnd);
  expect(right.toNs).toBeCloseTo(kEnd + 0.1 * 400_000);
  const left = panView(view, -1e12, kEnd);
  expect(left.fromNs).toBeCloseTo(-0.1 * 400_000);
});

test("a view from a broken link becomes the whole trace", () => {
  expect(clampView({ fromNs: Number.NaN, toNs: 5 }, kEnd)).toEqual({ fromNs: 0, toNs: kEnd });
});

test("the level is the one whose bin is at most a pixel", () => {
  expect(levelFor({ fromNs: 0, toNs: 800 }, 800)).toBe(0);
  expect(levelFor({ fromNs: 0, toNs: 800 * 1024 }, 800)).toBe(10);
  expect(levelFor({ fromNs: 0, toNs: 800 * 1023 }, 800)).toBe(9);
  expect(levelFor({ fromNs: 0, toNs: 40 }, 800)).toBe(0);
});

test("visible tiles are those in the view, within the trace", () => {
  // Level 5: a tile is 16384 ns.
  expect(visibleTiles({ fromNs: -100, toNs: 16384 }, 5, kEnd)).toEqual({ first: 0, last: 0 });
  expect(visibleTiles({ fromNs: 16383, toNs: 16385 }, 5, kEnd)).toEqual({ first: 0, last: 1 });
  expect(visibleTiles({ fromNs: 999_000, toNs: 2_000_000 }, 5, kEnd)).toEqual({ first: 60, last: 61 });
});

test("fitting leaves a margin on both sides", () => {
  const fitted = fitView(400_000, 100_000, kEnd);
  expect(fitted.fromNs).toBe(385_000);
  expect(fitted.toNs).toBe(515_000);
});

test("revealing moves no more than needed", () => {
  expect(revealView(view, 300_000, 10_000, kEnd)).toBe(view);
  const moved = revealView(view, 700_000, 10_000, kEnd);
  expect(moved.toNs - moved.fromNs).toBe(400_000);
  expect(moved.fromNs).toBeLessThan(700_000);
  const speck = revealView(view, 300_000, 10, kEnd);
  expect(speck.toNs - speck.fromNs).toBe(400);
  const large = revealView(view, 100_000, 800_000, kEnd);
  expect(large.fromNs).toBeLessThanOrEqual(100_000);
  expect(large.toNs).toBeGreaterThanOrEqual(900_000);
});

test("with less width the scale stays, and what was clicked stays visible", () => {
  expect(resizedView(view, 800, 600, 250_000, kEnd)).toEqual({ fromNs: 200_000, toNs: 500_000 });
  const moved = resizedView(view, 800, 600, 590_000, kEnd);
  expect(moved.toNs - moved.fromNs).toBe(300_000);
  expect(timeToX(moved, 600, 590_000)).toBeCloseTo(540);
  expect(resizedView(moved, 600, 800, null, kEnd).toNs - moved.fromNs).toBe(400_000);
});

test("ruler ticks are multiples of 1, 2 or 5, and far enough apart", () => {
  expect(rulerStepNs({ fromNs: 0, toNs: 1000 }, 1000, 90)).toBe(100);
  expect(rulerStepNs({ fromNs: 0, toNs: 1300 }, 1000, 90)).toBe(200);
  expect(rulerStepNs({ fromNs: 0, toNs: 40 }, 1000, 90)).toBe(5);
});

test("an animation starts and ends at its views", () => {
  const to = { fromNs: 0, toNs: 10 };
  expect(interpolateViews(view, to, 0)).toEqual(view);
  const end = interpolateViews(view, to, 1);
  expect(end.fromNs).toBeCloseTo(0);
  expect(end.toNs).toBeCloseTo(10);
});
