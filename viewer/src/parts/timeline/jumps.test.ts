import { expect, test } from "vitest";
import { stepBeside, stepIn } from "./jumps";

// Steps 5 to 8, 100 ns each, from 1000 on.
const steps = [5, 6, 7, 8].map((number, at) => ({ number, startNs: 1000 + 100 * at, durationNs: 100 }));
const view = (fromNs: number, toNs: number) => ({ fromNs, toNs });

test("the step that fills the middle of the view is the current one; there is none while several are visible", () => {
  expect(stepIn(view(1095, 1205), steps)?.number).toBe(6);
  expect(stepIn(view(1140, 1160), steps)?.number).toBe(6);
  expect(stepIn(view(1000, 1400), steps)).toBe(null);
  expect(stepIn(view(0, 100), steps)).toBe(null);
});

test("next and previous go from the current step, and end at the ends", () => {
  expect(stepBeside(view(1095, 1205), steps, 1)?.number).toBe(7);
  expect(stepBeside(view(1095, 1205), steps, -1)?.number).toBe(5);
  expect(stepBeside(view(1295, 1405), steps, 1)).toBe(null);
});

test("from the whole trace the next step is the first, the previous one the last", () => {
  expect(stepBeside(view(0, 2000), steps, 1)?.number).toBe(5);
  expect(stepBeside(view(0, 2000), steps, -1)?.number).toBe(8);
});
