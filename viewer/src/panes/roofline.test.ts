import { expect, test } from "vitest";
import type { Report } from "../data/types";
import { roofAt, roofPoints, roofsOf } from "./roofline";

const fact = (name: string, value: number | null) => ({ name, label: name, kind: "number" as const, value });
const names = ["op", "class", "device_ns", "tflop_s", "flops_per_byte", "roof_percent"];
const report: Report = {
  title: "Roofline",
  facts: [fact("peak_fp32_tflops", 67), fact("peak_bf16_tflops", 990), fact("peak_fp16_tflops", 990), fact("peak_bandwidth_gb_s", 4800)],
  tables: [
    {
      name: "ops",
      title: "",
      rowCount: 2,
      columns: names.map((name) => ({ name, label: name, kind: "number" })),
      rows: [["aten::mm", "matmul", 700, 585, 390, 59], ["aten::cat", "indexing", 500, null, null, null]],
      notes: [],
    },
  ],
  notes: [],
};

test("only ops with known FLOPs and bytes are points", () => {
  expect(roofPoints(report).map((point) => [point.op, point.flopsPerByte, point.tflops])).toEqual([["aten::mm", 390, 585]]);
});

test("equal roofs are one line, the highest first", () => {
  expect(roofsOf(report)).toEqual({
    bandwidthGbS: 4800,
    tflops: [
      { name: "bf16, fp16", value: 990 },
      { name: "fp32", value: 67 },
    ],
  });
});

test("left of the ridge the memory limits, right of it the arithmetic", () => {
  expect(roofAt(10, 4800, 990)).toBe(48);
  expect(roofAt(1000, 4800, 990)).toBe(990);
});
