import { expect, test } from "vitest";
import { formatByKind, formatBytes, formatChange, formatDuration, formatPercent, formatShare, formatTime } from "./format";

test("durations use the unit that gives one to three digits before the decimal point", () => {
  expect(formatDuration(0)).toBe("0 ns");
  expect(formatDuration(950)).toBe("950 ns");
  expect(formatDuration(12_345)).toBe("12.3 us");
  expect(formatDuration(4_560_000)).toBe("4.56 ms");
  expect(formatDuration(120e9)).toBe("120 s");
  expect(formatDuration(-1500)).toBe("-1.50 us");
});

test("a value that would round to 1000 uses the next unit", () => {
  expect(formatDuration(999_600)).toBe("1.00 ms");
  expect(formatBytes(1024 * 1023.9)).toBe("1.00 MiB");
});

test("unknown values are a dash, not zero", () => {
  expect(formatDuration(null)).toBe("–");
  expect(formatBytes(Number.NaN)).toBe("–");
  expect(formatByKind("bytes", null)).toBe("–");
});

test("shares are fractions, percentages are out of a hundred", () => {
  expect(formatShare(0.423)).toBe("42.3%");
  expect(formatPercent(42.3)).toBe("42.3%");
});

test("cells are formatted by the kind of their column", () => {
  expect(formatByKind("truth", 1)).toBe("yes");
  expect(formatByKind("bandwidth", 1500)).toBe("1.50 TB/s");
  expect(formatByKind("number", 1234567)).toBe("1,234,567");
  expect(formatByKind("number", 63_675.458)).toBe("63,675");
  expect(formatByKind("number", 12.3456)).toBe("12.35");
  expect(formatByKind("small", 0.000123456789)).toBe("0.000123457");
  expect(formatByKind("text", "<b>")).toBe("<b>");
});

test("ticks of a ruler have enough digits to differ from their neighbors", () => {
  expect(formatTime(12_345_000, 1000)).toBe("12.345 ms");
  expect(formatTime(20_000_000, 5_000_000)).toBe("20 ms");
  expect(formatTime(0, 1_000_000)).toBe("0 ms");
  expect(formatTime(1_500_000_000, 500_000_000)).toBe("1.5 s");
  expect(formatTime(500_000_000, 500_000_000, 1_500_000_000)).toBe("0.5 s");
});

test("a difference has its sign, and none where there is no difference", () => {
  expect([1500, -1500, 0].map(formatChange)).toEqual(["+1.50 us", "-1.50 us", "0 ns"]);
});
