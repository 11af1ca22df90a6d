import { expect, test } from "vitest";
import { capitalize, eventRef, placeName, placesText, speedup } from "./diagnosis";

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

test("lines are named without folders, with their shares where there are several", () => {
  const line = { line: "src/a/model.py(41): forward", calledFrom: "", callers: [], timeNs: 5, sharePercent: 99.6, mostIn: "" };
  expect(placeName(line)).toBe("model.py(41): forward");
  expect(placesText([line])).toBe("model.py(41): forward");
  expect(placeName({ ...line, callers: ["a/train.py(8): train", "a/train.py(30): log"] })).toBe(
    "model.py(41): forward, called at train.py(8): train and train.py(30): log",
  );
  const inPackage = { ...line, line: "einops/einops.py(97): reduce", calledFrom: "/home/me/train.py(12): main", sharePercent: 62 };
  expect(placesText([inPackage, { ...line, sharePercent: 30 }])).toBe(
    "einops.py(97): reduce, from train.py(12): main (62.0%), model.py(41): forward (30.0%)",
  );
});

test("titles begin with a capital letter, names of the program stay as they are", () => {
  expect(capitalize("the host waits")).toBe("The host waits");
  expect(capitalize("zero_grad fills gradients")).toBe("zero_grad fills gradients");
  expect(capitalize("")).toBe("");
});
