import { expect, test } from "vitest";
import { scaleTop } from "./bar_scale";

const rows = (...ms: [number, boolean][]) =>
  ms.map(([durationNs, warmup]) => ({ durationNs, warmup }));

test("the scale reaches the longest step, with some room", () => {
  expect(scaleTop(rows([100, false], [80, false]))).toBeCloseTo(105);
  expect(scaleTop(rows([200, true], [100, false]))).toBeCloseTo(210);
});

test("a warm-up step many times as long as the others is clipped, so that they can be told apart", () => {
  expect(scaleTop(rows([2600, true], [160, false], [170, false]))).toBeCloseTo(272);
});

test("without steps, or with nothing but warm-up, there is still a scale", () => {
  expect(scaleTop([])).toBe(1);
  expect(scaleTop(rows([100, true]))).toBeCloseTo(105);
});
