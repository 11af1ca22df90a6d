import { expect, test } from "vitest";
import { cellText } from "./cells";

const column = (name: string, kind: "duration" | "text" | "bytes") => ({ name, label: name, kind });

test("points in time are exact to the microsecond, durations have three digits", () => {
  expect(cellText(column("start_ns", "duration"), 44_012_345)).toBe("44.012 ms");
  expect(cellText(column("start_ns", "duration"), 708_229)).toBe("708 us");
  expect(cellText(column("duration_ns", "duration"), 44_012_345)).toBe("44.0 ms");
  expect(cellText(column("time_ns", "duration"), 44_012_345)).toBe("44.012 ms");
  expect(cellText({ name: "time_ns", label: "Time", kind: "duration" }, 44_012_345)).toBe("44.0 ms");
  expect(cellText(column("start_ns", "duration"), null)).toBe("–");
});

test("ids have no thousands separators", () => {
  const number = (name: string) => ({ name, label: name, kind: "number" as const });
  expect(cellText(number("process_id"), 27_560)).toBe("27560");
  expect(cellText(number("thread"), 1850)).toBe("1850");
  expect(cellText(number("calls"), 1850)).toBe("1,850");
});

test("a difference has its sign", () => {
  const signed = (kind: "duration" | "percent") => ({ name: "difference", label: "Difference", kind, signed: true });
  expect(cellText(signed("duration"), 1500)).toBe("+1.50 us");
  expect(cellText(signed("duration"), -1500)).toBe("-1.50 us");
  expect(cellText(signed("percent"), 110.72)).toBe("+110.7%");
  expect(cellText(signed("percent"), 0)).toBe("0.0%");
});

test("names of kernels are shortened, other text is not", () => {
  expect(cellText(column("name", "text"), "void at::native::f<float>(int)")).toBe("f<float>");
  expect(cellText(column("name", "text"), "aten::mm")).toBe("aten::mm");
});
