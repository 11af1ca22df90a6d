import { expect, test } from "vitest";
import type { StepMark } from "../../data/answers";
import { firstPair, followedView, pairView, usualStep } from "./align";

// Steps of the given lengths, one after another from `startNs`.
function steps(startNs: number, ...lengths: number[]): StepMark[] {
  let at = startNs;
  return lengths.map((durationNs, number) => {
    const startNs = at;
    at += durationNs;
    return { number, startNs, durationNs };
  });
}

test("the step of median length is the usual one", () => {
  expect(usualStep(steps(0, 90, 10, 12, 11))).toBe(3);
  expect(usualStep(steps(0, 10))).toBe(0);
  expect(usualStep([])).toBe(-1);
});

test("both sides begin with the same step, unless that is warm-up on the other", () => {
  expect(firstPair(steps(0, 90, 10, 12, 11), steps(0, 90, 20, 20, 20))).toEqual([3, 3]);
  expect(firstPair(steps(0, 10, 20, 30), steps(0, 90, 80, 20, 20, 20))).toEqual([1, 4]);
  expect(firstPair(steps(0, 10, 11, 12), [])).toEqual([1, -1]);
});

test("the follower shows as much time as the leader, from the start of the step that stands below", () => {
  const before = { steps: steps(1000, 100, 100, 100), at: 1 };
  const after = { steps: steps(5000, 200, 200, 200), at: 1 };
  const view = pairView(before, after, 9999);
  expect(view).toEqual({ fromNs: 1096, toNs: 1304 });
  expect(followedView(view, before, after)).toEqual({ fromNs: 5196, toNs: 5404 });
});

test("when the leader goes to its next step, the follower does too, although its steps are longer", () => {
  const before = { steps: steps(0, 100, 100, 100), at: 0 };
  const after = { steps: steps(0, 200, 200, 200), at: 0 };
  expect(followedView({ fromNs: 200, toNs: 300 }, before, after)).toEqual({ fromNs: 400, toNs: 500 });
  expect(followedView({ fromNs: 400, toNs: 500 }, after, before)).toEqual({ fromNs: 200, toNs: 300 });
});

test("past the last step, and in a trace without steps, the distance to the chosen step counts", () => {
  const before = { steps: steps(0, 100, 100, 100), at: 0 };
  expect(followedView({ fromNs: 200, toNs: 300 }, before, { steps: steps(50, 10), at: 0 })).toEqual({ fromNs: 250, toNs: 350 });
  expect(followedView({ fromNs: 200, toNs: 300 }, before, { steps: [], at: -1 })).toEqual({ fromNs: 200, toNs: 300 });
  expect(pairView({ steps: [], at: -1 }, { steps: [], at: -1 }, 50)).toEqual({ fromNs: -1, toNs: 51 });
});
