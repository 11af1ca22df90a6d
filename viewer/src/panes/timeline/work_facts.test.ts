import { expect, test } from "vitest";
import { argText, workFacts } from "./work_facts";

test("a kernel has its occupancy and what limits it", () => {
  const kernel = { kind: "kernel", args: {} };
  expect(workFacts({ ...kernel, occupancy: { percent: 9.09, limitText: "the grid (too few blocks)" } })).toEqual([
    ["Occupancy", "9.1%, limited by the grid (too few blocks)"],
  ]);
  expect(workFacts({ ...kernel, occupancy: { percent: 50, limitText: "registers" } })).toEqual([["Occupancy", "50.0%, limited by registers"]]);
  expect(workFacts({ ...kernel, occupancy: { percent: 100, limitText: "" } })).toEqual([["Occupancy", "100.0%"]]);
});

test("a copy has its size and bandwidth", () => {
  const args = { bytes: 4 << 20, "memory bandwidth (GB/s)": 12.5 };
  expect(workFacts({ kind: "copy", occupancy: null, args })).toEqual([["Bytes", "4.00 MiB at 12.5 GB/s"]]);
  expect(workFacts({ kind: "op", occupancy: null, args })).toEqual([]);
});

test("work that is only partly in the recording says so", () => {
  expect(workFacts({ kind: "kernel", occupancy: null, args: { window: "began before" } })).toEqual([
    ["Recorded", "in part: began before the recording"],
  ]);
});

test("args are shown as they are, floats without noise digits", () => {
  expect(argText(0.12121212482452393)).toBe("0.121212");
  expect(argText(4194304)).toBe("4194304");
  expect(argText([4, 1, 4])).toBe("[4,1,4]");
  expect(argText("ReLU")).toBe("ReLU");
});
