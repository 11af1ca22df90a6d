// The points and roofs of a roofline chart, from the roofline report. Pure.

import type { Report } from "../data/types";

export interface RoofPoint {
  op: string;
  kernelClass: string;
  flopsPerByte: number;
  tflops: number;
  deviceNs: number;
  roofPercent: number | null;
}

export interface Roofs {
  bandwidthGbS: number | null;
  tflops: { name: string; value: number }[]; // highest first, equal ones once
}

// Ops for which the trace gives both FLOPs and bytes.
export function roofPoints(report: Report): RoofPoint[] {
  const table = report.tables.find((each) => each.columns.some((column) => column.name === "flops_per_byte"));
  if (!table) return [];
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const [op, kind, intensity, tflops, device, roof] = [
    at("op"),
    at("class"),
    at("flops_per_byte"),
    at("tflop_s"),
    at("device_ns"),
    at("roof_percent"),
  ];
  return table.rows.flatMap((row) => {
    const x = row[intensity];
    const y = row[tflops];
    if (typeof x !== "number" || typeof y !== "number" || x <= 0 || y <= 0) return [];
    return [
      {
        op: String(row[op] ?? ""),
        kernelClass: String(row[kind] ?? ""),
        flopsPerByte: x,
        tflops: y,
        deviceNs: Number(row[device] ?? 0),
        roofPercent: typeof row[roof] === "number" ? (row[roof] as number) : null,
      },
    ];
  });
}

export function roofsOf(report: Report): Roofs {
  const fact = (name: string) => {
    const value = report.facts.find((each) => each.name === name)?.value;
    return typeof value === "number" && value > 0 ? value : null;
  };
  const peaks = ["fp32", "tf32", "bf16", "fp16", "fp8"].flatMap((name) => {
    const value = fact(`peak_${name}_tflops`);
    return value === null ? [] : [{ name, value }];
  });
  const byValue = new Map<number, string[]>();
  for (const { name, value } of peaks) byValue.set(value, [...(byValue.get(value) ?? []), name]);
  const tflops = [...byValue].map(([value, names]) => ({ name: names.join(", "), value }));
  return { bandwidthGbS: fact("peak_bandwidth_gb_s"), tflops: tflops.sort((a, b) => b.value - a.value) };
}

// What the hardware allows at an intensity: TFLOP/s below `peak`, by the memory's bandwidth left of the ridge.
export function roofAt(flopsPerByte: number, bandwidthGbS: number, peakTflops: number): number {
  return Math.min(peakTflops, (flopsPerByte * bandwidthGbS) / 1000);
}
