import { expect, test } from "vitest";
import type { Cell, Table } from "../../data/answers";
import { axisName, runsPlot } from "./runs_plot";

const table = (...rows: Cell[][]): Table => ({
  name: "runs",
  title: "",
  rowCount: rows.length,
  columns: [
    { name: "name", label: "Batch", kind: "text" },
    { name: "step_ns", label: "Step", kind: "duration" },
    { name: "samples", label: "Batch", kind: "number" },
    { name: "samples_per_second", label: "Samples/s", kind: "number" },
    { name: "energy_joules", label: "Energy, J", kind: "small" },
  ],
  rows,
  notes: [],
});

test("batch sizes are values on the axis, in order", () => {
  const plot = runsPlot(table(["32", 40, 32, 800, null], ["8", 20, 8, 400, null]), "name");
  expect(plot.numeric).toBe(true);
  expect(plot.x).toEqual([8, 32]);
  expect(plot.names).toEqual(["8", "32"]);
  expect(plot.figures.map((figure) => [figure.column.name, figure.values])).toEqual([
    ["samples_per_second", [400, 800]],
    ["step_ns", [20, 40]],
  ]);
});

test("models stand side by side in the order of the table, and can be drawn over another column", () => {
  const rows = table(["GPT", 40, 32, 800, 1.5], ["ResNet", 20, 8, null, null]);
  const plot = runsPlot(rows, "name");
  expect([plot.numeric, plot.x]).toEqual([false, [0, 1]]);
  expect(plot.figures[0].values).toEqual([800, null]);
  expect(runsPlot(rows, "samples").names).toEqual(["ResNet", "GPT"]);
});

test("values that are unknown or the same for several runs are no axis", () => {
  expect(runsPlot(table(["a", 1, 8, 1, 1], ["b", 1, 8, 1, 1]), "samples").numeric).toBe(false);
  expect(runsPlot(table(["a", 1, null, 1, 1], ["b", 1, 8, 1, 1]), "samples").numeric).toBe(false);
  expect(runsPlot(table(), "name")).toEqual({ names: [], x: [], numeric: false, figures: [] });
});

test("a name on the axis is shortened to its room, and becomes its row where there is none", () => {
  const names = ["fp32-matmul.fixed.lane", "b.json.gz"];
  expect(axisName(names, 0, 20)).toBe("fp32-matmul.fixed");
  expect(axisName(names, 0, 9)).toBe("fp32…ixed");
  expect(axisName(names, 1, 3)).toBe("b");
  expect(axisName(names, 0, 3)).toBe("1");
  expect(axisName(names, 2, 3)).toBe("");
});
