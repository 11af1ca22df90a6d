// Numbers as text, the same in every pane. Kinds are those of a described report (src/report/table.h). Unknown values (null,
// NaN) are an en dash.

import type { Cell } from "../data/answers";

const kUnknown = "–";

type Maybe = number | null | undefined;

function known(value: Maybe): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

// Three significant digits, no exponent: 1.23, 12.3, 123.
function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

function scaled(value: number, factor: number, units: readonly string[]): string {
  let i = 0;
  let size = Math.abs(value);
  // 999.6 would print as 1000: use the next unit.
  while (i + 1 < units.length && size >= factor * 0.9995) {
    size /= factor;
    i += 1;
  }
  const sign = value < 0 ? "-" : "";
  return `${sign}${i === 0 ? trimmed(size) : digits(size)} ${units[i]}`;
}

function trimmed(value: number): string {
  return Number.isInteger(value) ? String(value) : digits(value);
}

// 950 ns, 12.3 us, 4.56 ms, 1.20 s.
export function formatDuration(ns: Maybe): string {
  return known(ns) ? scaled(ns, 1000, ["ns", "us", "ms", "s"]) : kUnknown;
}

// A difference: +1.20 ms, -300 ns.
export function formatChange(ns: number): string {
  return ns > 0 ? `+${formatDuration(ns)}` : formatDuration(ns);
}

// 512 B, 1.50 KiB, 12.0 MiB.
export function formatBytes(bytes: Maybe): string {
  return known(bytes) ? scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]) : kUnknown;
}

// From GB/s, the unit of reports.
function formatBandwidth(gbPerSecond: Maybe): string {
  return known(gbPerSecond) ? scaled(gbPerSecond * 1e9, 1000, ["B/s", "KB/s", "MB/s", "GB/s", "TB/s"]) : kUnknown;
}

// From a fraction: 0.423 is 42.3%.
export function formatShare(share: Maybe): string {
  return known(share) ? formatPercent(share * 100) : kUnknown;
}

// From a percentage, the unit of reports: 42.3 is 42.3%.
export function formatPercent(percent: Maybe): string {
  return known(percent) ? `${percent.toFixed(1)}%` : kUnknown;
}

// 1,234,567 for counts; other numbers with about four digits: 0.125, 12.35, 123.4, 63,675.
export function formatNumber(value: Maybe): string {
  if (!known(value)) return kUnknown;
  const size = Math.abs(value);
  const decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return value.toLocaleString("en-US", { maximumFractionDigits: decimals });
}

// A point in time, precise to `stepNs`: 12.345 ms. The ticks of a ruler share a unit by passing the same `unitOfNs`.
export function formatTime(ns: number, stepNs: number, unitOfNs = ns): string {
  const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "us"],
    [1, "ns"],
  ];
  const size = Math.max(Math.abs(unitOfNs), stepNs);
  const [factor, unit] = units.find(([f]) => size >= f) ?? [1, "ns"];
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(factor / Math.max(stepNs, 1e-9)) - 1e-9)));
  return `${(ns / factor).toFixed(decimals)} ${unit}`;
}

// By the `kind` of a column or fact.
export function formatByKind(kind: string, value: Cell | undefined): string {
  if (value === null || value === undefined) return kUnknown;
  switch (kind) {
    case "duration":
      return formatDuration(Number(value));
    case "bytes":
      return formatBytes(Number(value));
    case "percent":
      return formatPercent(Number(value));
    case "bandwidth":
      return formatBandwidth(Number(value));
    case "small":
      return Number(Number(value).toPrecision(6)).toString();
    case "number":
      return typeof value === "number" ? formatNumber(value) : String(value);
    case "truth":
      return value ? "yes" : "no";
    default:
      return String(value);
  }
}
