import { expect, test } from "vitest";
import { scaleTop } from "./bar_scale";

const rows = (...ms: [number, boolean][]) =>
  ms.map(([durationNs, warmup]) => ({ durationNs, warmup }));

test("bars reach to the longest step, with a little room", () => {
  expect(scaleTop(rows([100, false], [80, false]))).toBeCloseTo(105);
  expect(scaleTop(rows([200, true], [100, false]))).toBeCloseTo(210);
});

test("a warm-up step many times as long as the others is cut, so that those can be seen", () => {
  expect(scaleTop(rows([2600, true], [160, false], [170, false]))).toBeCloseTo(272);
});

test("without steps, or with nothing but warm-up, there is still a scale", () => {
  expect(scaleTop([])).toBe(1);
  expect(scaleTop(rows([100, true]))).toBeCloseTo(105);
});
