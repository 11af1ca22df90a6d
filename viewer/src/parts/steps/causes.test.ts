import { expect, test } from "vitest";
import { causeColors } from "./causes";

test("parts of a chart share a color only when colors run out", () => {
  const colors = causeColors(["compute", "idle: host_python", "idle: host_unrecorded", "idle: host_op", "python", "rest"]);
  expect(new Set(colors).size).toBe(colors.length);
  expect(colors[0]).toBe("--c3");
});

test("where two parts have the same color, the larger one keeps it", () => {
  const parts = ["idle: host_launch", "idle: launch_latency"];
  expect(causeColors(parts, [1, 100])[1]).toBe("--c5");
  expect(causeColors(parts, [100, 1])[0]).toBe("--c5");
});

test("a part that the page does not know gets a free color", () => {
  expect(causeColors(["something_new", "constructor", "compute"])).toEqual(["--c1", "--c2", "--c3"]);
});
