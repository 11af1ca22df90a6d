import { expect, test } from "vitest";
import { cellText } from "./cells";

const column = (name: string, kind: "duration" | "text" | "bytes") => ({ name, label: name, kind });

test("moments are told apart to the microsecond, durations have three digits", () => {
  expect(cellText(column("start_ns", "duration"), 44_012_345)).toBe("44.012 ms");
  expect(cellText(column("start_ns", "duration"), 708_229)).toBe("708 us");
  expect(cellText(column("duration_ns", "duration"), 44_012_345)).toBe("44.0 ms");
  expect(cellText(column("time_ns", "duration"), 44_012_345)).toBe("44.012 ms");
  expect(cellText({ name: "time_ns", label: "Time", kind: "duration" }, 44_012_345)).toBe("44.0 ms");
  expect(cellText(column("start_ns", "duration"), null)).toBe("–");
});

test("names of kernels are shortened, other text is not", () => {
  expect(cellText(column("name", "text"), "void at::native::f<float>(int)")).toBe("f<float>");
  expect(cellText(column("name", "text"), "aten::mm")).toBe("aten::mm");
});
