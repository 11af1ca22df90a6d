import { expect, test } from "vitest";
import { capitalize, eventRef } from "./diagnosis";

test("an event's ref tells host from device", () => {
  expect(eventRef({ table: "device_slices", row: 7 })).toBe("d7");
  expect(eventRef({ table: "host_slices", row: 12 })).toBe("h12");
});

test("titles begin with a capital letter, names of the program stay as they are", () => {
  expect(capitalize("the host waits")).toBe("The host waits");
  expect(capitalize("zero_grad fills gradients")).toBe("zero_grad fills gradients");
  expect(capitalize("")).toBe("");
});
