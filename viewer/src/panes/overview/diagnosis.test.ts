import { expect, test } from "vitest";
import { eventRef, isHealthy, speedup, splitVerdict } from "./diagnosis";

test("a gain is given as the speedup of a step", () => {
  expect(speedup(100, { lowNs: 20, highNs: 50 })).toBe("1.25x to 2.00x as fast");
  expect(speedup(100, { lowNs: 50, highNs: 50 })).toBe("2.00x as fast");
  expect(speedup(100, { lowNs: 0, highNs: 0 })).toBe("");
  expect(speedup(100, { lowNs: 50, highNs: 200 })).toBe("2.00x to 1000.00x as fast");
});

test("a verdict is split into its name and its sentence", () => {
  expect(splitVerdict("input-bound: the program waits; a step takes 1 ms")).toEqual({
    head: "input-bound",
    rest: "the program waits; a step takes 1 ms",
  });
  expect(splitVerdict("no verdict")).toEqual({ head: "", rest: "no verdict" });
});

test("an event's ref tells host from device", () => {
  expect(eventRef({ table: "device_slices", row: 7 })).toBe("d7");
  expect(eventRef({ table: "host_slices", row: 12 })).toBe("h12");
});

test("an empty trace is not called healthy", () => {
  expect(isHealthy({ healthy: true, limit: "compute" })).toBe(true);
  expect(isHealthy({ healthy: true, limit: "unknown" })).toBe(false);
});
