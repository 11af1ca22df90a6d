import { expect, test } from "vitest";
import { causeColors, causeLabel, gapLabel } from "./causes";

test("parts of a step have readable labels", () => {
  expect(causeLabel("compute")).toBe("computing");
  expect(causeLabel("idle: host_op")).toBe("idle: host was in operators");
  expect(causeLabel("idle: host_input")).toBe("idle: waiting for the next batch");
  expect(causeLabel("something_new")).toBe("something new");
  expect(causeLabel("constructor")).toBe("constructor");
});

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

test("the cause of a gap has a label, even one that the page does not know", () => {
  expect(gapLabel("host_python")).toBe("host was running Python");
  expect(gapLabel("launch_latency")).toBe("launched but not started");
  expect(gapLabel("new_cause")).toBe("new cause");
});

test("light steps do not tell Python from operators, and no label says that they do", () => {
  expect(causeLabel("idle: host_unrecorded")).toContain("between operators");
  expect(causeLabel("idle: host_unrecorded", "light")).toBe("idle: host was in Python or in operators (light steps do not distinguish)");
  expect(gapLabel("host_op", "light")).toBe("host was inside operators, between their launches");
  expect(causeLabel("idle: host_sync", "light")).toBe(causeLabel("idle: host_sync"));
});
