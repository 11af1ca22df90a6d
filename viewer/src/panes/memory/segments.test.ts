import { expect, test } from "vitest";
import type { Report } from "../../data/answers";
import { categoryOf, exactPeak, peakOf, shownCategories } from "../../parts/memory/curve";
import { fragmentation, packSegments, type Segment } from "./segments";

const segment = (bytes: number, ...blocks: [number, "allocated" | "free"][]): Segment => {
  let offset = 0;
  return {
    bytes,
    blocks: blocks.map(([size, state]) => {
      offset += size;
      return { offset: offset - size, bytes: size, state, owner: null };
    }),
  };
};

test("the largest segment fills a line and smaller ones share lines", () => {
  const { placed, lines } = packSegments([segment(40), segment(100), segment(40), segment(30)]);
  expect(lines).toBe(3);
  expect(placed.map((each) => [each.segment.bytes, each.line])).toEqual([
    [100, 0],
    [40, 1],
    [40, 1],
    [30, 2],
  ]);
});

test("fragmentation is the free memory inside segments", () => {
  const found = fragmentation([segment(100, [60, "allocated"], [30, "free"], [10, "free"]), segment(20, [20, "free"])]);
  expect(found).toEqual({ totalBytes: 120, freeBytes: 60, largestFreeBytes: 30, freeSegments: 1 });
});

test("the peak is the middle of the highest bin", () => {
  expect(peakOf({ fromNs: 100, binNs: 10, allocatedBytes: [null, 5, 9, 9] })).toEqual({ atNs: 125, bytes: 9 });
  expect(peakOf({ fromNs: 0, binNs: 10, allocatedBytes: [null] })).toBeNull();
});

test("the memory report knows the peak to the nanosecond", () => {
  const curve = { fromNs: 100, binNs: 10, allocatedBytes: [5, 9] };
  const columns = ["device", "peak_bytes", "peak_ns"].map((name) => ({ name, label: name, kind: "number" as const }));
  const devices = { name: "devices", title: "", rowCount: 2, columns, rows: [["CPU", 4, 7], ["GPU", 9, 113]], notes: [] };
  const report: Report = { recordedSteps: undefined, title: "", facts: [], tables: [devices], notes: [] };
  expect(exactPeak(curve, report)).toEqual({ atNs: 113, bytes: 9 });
  expect(exactPeak(curve, null)).toEqual({ atNs: 115, bytes: 9 });
});

test("a block belongs to the category that its owner starts with", () => {
  const categories = shownCategories({ categories: { inputs: [0, null], gradients: [1], activations: [null, 2] } });
  expect(categories).toEqual(["gradients", "activations"]);
  expect(categoryOf("activations: aten::mm", categories)).toBe(1);
  expect(categoryOf("activation: aten::mm", categories)).toBe(-1);
  expect(categoryOf(null, categories)).toBe(-1);
});
