import { expect, test } from "vitest";
import { causeColors, causeWords, gapWords } from "./causes";

test("parts of a step have words for people", () => {
  expect(causeWords("compute")).toBe("computing");
  expect(causeWords("idle: host_op")).toBe("idle: the host was inside operators");
  expect(causeWords("idle: host_input")).toBe("idle: waiting for the next batch");
  expect(causeWords("something_new")).toBe("something new");
  expect(causeWords("constructor")).toBe("constructor");
});

test("no two parts of one chart share a colour as long as there are enough", () => {
  const colors = causeColors(["compute", "idle: host_python", "idle: host_unrecorded", "idle: host_op", "python", "rest"]);
  expect(new Set(colors).size).toBe(colors.length);
  expect(colors[0]).toBe("--c3");
});

test("where two parts want one colour, the larger has it", () => {
  const parts = ["idle: host_launch", "idle: launch_latency"];
  expect(causeColors(parts, [1, 100])[1]).toBe("--c5");
  expect(causeColors(parts, [100, 1])[0]).toBe("--c5");
});

test("the cause of a gap is told in words, also one that the page does not know", () => {
  expect(gapWords("host_python")).toBe("the host was running Python");
  expect(gapWords("launch_latency")).toBe("launched, not yet started");
  expect(gapWords("new_cause")).toBe("new cause");
});
