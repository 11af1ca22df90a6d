import { expect, test } from "vitest";
import { capitalize, eventRef, speedup } from "./diagnosis";

test("a gain is given as the speedup of a step", () => {
  expect(speedup({ highNs: 50, lowSpeedup: 1.25, highSpeedup: 2 })).toBe("1.25x to 2.00x as fast");
  expect(speedup({ highNs: 50, lowSpeedup: 2, highSpeedup: 2 })).toBe("2.00x as fast");
  expect(speedup({ highNs: 50, lowSpeedup: 2.46, highSpeedup: 99 })).toBe("2.46x or more as fast");
  expect(speedup({ highNs: 50, lowSpeedup: 30, highSpeedup: 99 })).toBe("more than 20x as fast");
  expect(speedup({ highNs: 0, lowSpeedup: 1, highSpeedup: 1 })).toBe("");
});

test("an event's ref tells host from device", () => {
  expect(eventRef({ table: "device_slices", row: 7 })).toBe("d7");
  expect(eventRef({ table: "host_slices", row: 12 })).toBe("h12");
});

test("titles begin with a capital letter, names of the program stay as they are", () => {
  expect(capitalize("the host waits")).toBe("The host waits");
  expect(capitalize("zero_grad fills gradients")).toBe("zero_grad fills gradients");
  expect(capitalize("")).toBe("");
});
