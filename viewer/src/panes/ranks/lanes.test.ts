import { expect, test } from "vitest";
import type { JobTimeline, LanePiece } from "../../data/job_answers";
import {
  arrowsOf,
  clampWindow,
  fetchedWindow,
  findAt,
  formatRanks,
  inTrace,
  kLanePx,
  kRulerPx,
  parseRanks,
  pathLines,
  ranksOnPath,
  zoomWindow,
} from "./lanes";

const piece = (start: number, moves: number, end: number, id: number, sends = 0): LanePiece => [start, moves, end, id, 1, 0, sends];

const lane = (rank: number, pieces: LanePiece[]) => ({
  rank,
  traceFromNs: rank * 1_000_000,
  traceToNs: rank * 1_000_000 + 10_000,
  pieces,
  bins: [],
});

// Rank 2 arrives last at the first collective; the second is a send from 0 to 2.
const timeline: JobTimeline = {
  fromNs: 0,
  toNs: 10_000,
  ops: ["unknown", "all_reduce"],
  lanes: [
    lane(0, [piece(1000, 3000, 3500, 7), piece(5000, 5000, 6000, 8, 1)]),
    lane(1, [piece(2900, 3000, 3500, 7)]),
    lane(2, [piece(3000, 3000, 3500, 7), piece(4000, 5000, 6000, 8)]),
  ],
  path: [
    [2, 0, 3000, 0],
    [2, 3000, 3500, 1],
    [0, 3500, 5000, 0],
    [9, 5000, 6000, 0],
  ],
};
const whole = { fromNs: 0, toNs: 10_000 };

test("an arrow goes from the last to arrive to those that waited long enough to be seen", () => {
  expect(arrowsOf(timeline, whole, 100)).toEqual([
    { fromLane: 2, toLane: 0, fromNs: 3000, toNs: 3000 },
    { fromLane: 0, toLane: 2, fromNs: 5000, toNs: 5000 },
  ]);
  expect(arrowsOf(timeline, whole, 1000)).toHaveLength(3);
  expect(arrowsOf(timeline, { fromNs: 7000, toNs: 9000 }, 100)).toHaveLength(0);
});

test("the path lies on the lanes that are shown, and names ranks that are not", () => {
  expect(pathLines(timeline.path, timeline.lanes).map((line) => line.lane)).toEqual([2, 2, 0, -1]);
  expect(ranksOnPath(timeline.path, 2)).toEqual([0, 2]);
});

test("the pointer finds the collective of a lane, or that the rank works", () => {
  const y = kRulerPx + 2 * kLanePx + 5;
  expect(findAt(timeline, whole, 100, 32, y)?.piece?.[3]).toBe(7);
  expect(findAt(timeline, whole, 100, 10, y)).toMatchObject({ lane: 2, atNs: 1000, piece: null });
  expect(findAt(timeline, whole, 100, 10, 3)).toBeNull();
  expect(findAt(timeline, whole, 100, 10, kRulerPx + 3 * kLanePx)).toBeNull();
});

test("a moment is found in the trace of a rank", () => {
  expect(inTrace(timeline.lanes[2], timeline, 2500)).toBe(2_002_500);
});

test("windows stay inside of the job, and zooming keeps the moment under the pointer", () => {
  expect(clampWindow({ fromNs: -50, toNs: 5000 }, whole)).toEqual({ fromNs: 0, toNs: 5050 });
  const zoomed = zoomWindow(whole, 4000, 0.5, whole);
  expect((4000 - zoomed.fromNs) / (zoomed.toNs - zoomed.fromNs)).toBeCloseTo(0.4);
  expect(zoomWindow(zoomed, 4000, 100, whole)).toEqual(whole);
});

test("what is fetched covers what is seen, and is the same after a small pan", () => {
  const job = { fromNs: 100, toNs: 1_000_100 };
  for (const fromNs of [100, 5_000, 499_000, 999_000]) {
    const seen = { fromNs, toNs: Math.min(job.toNs, fromNs + 1100) };
    const fetched = fetchedWindow(seen, job);
    expect(fetched.fromNs).toBeLessThanOrEqual(seen.fromNs);
    expect(fetched.toNs).toBeGreaterThanOrEqual(seen.toNs);
  }
  expect(fetchedWindow({ fromNs: 5000, toNs: 6500 }, job)).toEqual(fetchedWindow({ fromNs: 5010, toNs: 6510 }, job));
});

test("ranks are typed as a list with ranges", () => {
  const known = new Set([0, 1, 2, 3, 8, 9, 10, 11]);
  expect(parseRanks("0, 8-11 3,3 99 x", known)).toEqual([0, 3, 8, 9, 10, 11]);
  expect(parseRanks("0-4000000000", known)).toEqual([...known]);
  expect(parseRanks("0-100", known, 2)).toEqual([0, 1]);
  expect(formatRanks([0, 3, 8, 9, 10, 11, 20, 21])).toBe("0,3,8-11,20,21");
});
