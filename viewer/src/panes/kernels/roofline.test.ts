import { expect, test } from "vitest";
import type { Report } from "../../data/answers";
import { roofAt, roofLabels, roofPoints, roofsOf, usedRoofs } from "./roofline";

const fact = (name: string, value: number | null) => ({ name, label: name, kind: "number" as const, value });
const names = ["op", "class", "precision", "device_ns", "tflop_s", "flops_per_byte", "roof_percent"];
const report: Report = {
  recordedSteps: undefined,
  title: "Roofline",
  facts: [fact("peak_fp32_tflops", 67), fact("peak_bf16_tflops", 990), fact("peak_fp16_tflops", 990), fact("peak_bandwidth_gb_s", 4800)],
  tables: [
    {
      name: "ops",
      title: "",
      rowCount: 2,
      columns: names.map((name) => ({ name, label: name, kind: "number" })),
      rows: [["aten::mm", "matmul", "fp32", 700, 58, 390, 87], ["aten::cat", "indexing", "bf16", 500, null, null, null]],
      notes: [],
    },
  ],
  notes: [],
};

test("only ops with known FLOPs and bytes are points", () => {
  expect(roofPoints(report).map((point) => [point.op, point.flopsPerByte, point.tflops])).toEqual([["aten::mm", 390, 58]]);
});

test("equal roofs are merged, the highest first", () => {
  expect(roofsOf(report)).toEqual({
    bandwidthGbS: 4800,
    tflops: [
      { name: "bf16, fp16", value: 990 },
      { name: "fp32", value: 67 },
    ],
  });
});

test("left of the ridge memory bandwidth is the limit, right of it compute", () => {
  expect(roofAt(10, 4800, 990)).toBe(48);
  expect(roofAt(1000, 4800, 990)).toBe(990);
});

test("only the roofs for the points' precisions are drawn", () => {
  const roofs = roofsOf(report);
  const [point] = roofPoints(report);
  expect(usedRoofs(roofs, [point])).toEqual([{ name: "fp32", value: 67 }]);
  expect(usedRoofs(roofs, [point, { ...point, precision: "fp16" }]).map((roof) => roof.value)).toEqual([990, 67]);
  expect(usedRoofs(roofs, [{ ...point, precision: "" }]).map((roof) => roof.value)).toEqual([990]);
});

test("labels of roofs overlap neither each other nor another line", () => {
  expect(roofLabels([100, 200], 16)).toEqual([{ y: 84, names: [0] }, { y: 184, names: [1] }]);
  expect(roofLabels([100, 112], 16)).toEqual([{ y: 84, names: [0] }, { y: 112, names: [1] }]);
  expect(roofLabels([100, 112, 124], 16)).toEqual([{ y: 84, names: [0, 1] }, { y: 124, names: [2] }]);
  expect(roofLabels([100, 112, 130], 16)).toEqual([{ y: 84, names: [0] }, { y: 112, names: [1] }, { y: 130, names: [2] }]);
});
