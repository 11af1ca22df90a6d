// The points and roofs of a roofline chart, from the roofline report. Pure.

import type { Report } from "../../data/answers";

export interface RoofPoint {
  op: string;
  kernelClass: string;
  precision: string;
  flopsPerByte: number;
  tflops: number;
  deviceNs: number;
  roofPercent: number | null;
}

export interface Roofs {
  bandwidthGbS: number | null;
  tflops: Roof[]; // highest first, equal ones merged
}

export interface Roof {
  name: string; // "bf16, fp16"
  value: number;
}

// Operators whose FLOPs and bytes are both known.
export function roofPoints(report: Report): RoofPoint[] {
  const table = report.tables.find((each) => each.columns.some((column) => column.name === "flops_per_byte"));
  if (!table) return [];
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const [op, kind, precision, intensity, tflops, device, roof] = [
    at("op"),
    at("class"),
    at("precision"),
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
        precision: String(row[precision] ?? ""),
        flopsPerByte: x,
        tflops: y,
        deviceNs: Number(row[device] ?? 0),
        roofPercent: typeof row[roof] === "number" ? row[roof] : null,
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

// Attainable TFLOP/s at an arithmetic intensity: bound by memory bandwidth left of the ridge, by `peakTflops` right of it.
export function roofAt(flopsPerByte: number, bandwidthGbS: number, peakTflops: number): number {
  return Math.min(peakTflops, (flopsPerByte * bandwidthGbS) / 1000);
}

// The roofs for the precisions of the points; the highest one where no precision is known.
export function usedRoofs(roofs: Roofs, points: readonly RoofPoint[]): Roof[] {
  const used = roofs.tflops.filter((roof) => roof.name.split(", ").some((name) => points.some((point) => point.precision === name)));
  return used.length > 0 ? used : roofs.tflops.slice(0, 1);
}

// Label positions for roof lines at `ys` (px, top first): above the line; below it where the line above is too close; merged with
// the label before where neither fits. `names` are indices of `ys`.
export function roofLabels(ys: readonly number[], heightPx: number): { y: number; names: number[] }[] {
  const out: { y: number; names: number[] }[] = [];
  let free = -Infinity; // nothing fits above this
  ys.forEach((y, at) => {
    if (y - heightPx >= free) {
      out.push({ y: y - heightPx, names: [at] });
      free = y;
    } else if ((ys[at + 1] ?? Infinity) - y >= heightPx) {
      out.push({ y, names: [at] });
      free = y + heightPx;
    } else {
      out[out.length - 1].names.push(at);
      free = y;
    }
  });
  return out;
}
