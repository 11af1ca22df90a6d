import { expect, test } from "vitest";
import type { Cell, Column } from "../../data/answers";
import { parseSort } from "../../parts/table/rows";
import { buildTree, matchingNodes, type TreeNode, visibleNodes } from "./tree";

const columns: Column[] = [
  { name: "module", label: "Module", kind: "text" },
  { name: "depth", label: "Depth", kind: "number" },
  { name: "host_ns", label: "Host", kind: "duration" },
];
const rows: Cell[][] = [
  ["GPT", 0, 100],
  ["Block_0", 1, 30],
  ["Linear_0", 2, 10],
  ["Block_1", 1, 60],
  ["Linear_1", 2, 20],
  ["Linear_2", 2, 40],
  ["Loss", 0, 5],
];
const roots = buildTree(columns, rows);
const names = (nodes: readonly TreeNode[]) => nodes.map((node) => node.row[0]);
const show = (isExpanded: (node: TreeNode) => boolean, sort = "") =>
  names(visibleNodes(roots, { columns, sort: parseSort(sort), isExpanded }));

test("rows become a tree by their depths", () => {
  expect(names(roots)).toEqual(["GPT", "Loss"]);
  expect(names(roots[0].children)).toEqual(["Block_0", "Block_1"]);
  expect(names(roots[0].children[1].children)).toEqual(["Linear_1", "Linear_2"]);
});

test("a row that skips a level becomes a child of the last shallower one", () => {
  const odd = buildTree(columns, [["a", 0, 1], ["b", 3, 1], ["c", 1, 1]]);
  expect(names(odd[0].children)).toEqual(["b", "c"]);
});

test("only expanded nodes show their children", () => {
  expect(show(() => false)).toEqual(["GPT", "Loss"]);
  expect(show((node) => node.depth === 0)).toEqual(["GPT", "Block_0", "Block_1", "Loss"]);
});

test("siblings are sorted among themselves", () => {
  expect(show(() => true, "-host_ns")).toEqual(["GPT", "Block_1", "Linear_2", "Linear_1", "Block_0", "Linear_0", "Loss"]);
});

test("a filter keeps the ancestors of a match", () => {
  const left = matchingNodes(roots, (row) => row[0] === "Linear_2");
  expect(names(visibleNodes(left, { columns, sort: null, isExpanded: () => true }))).toEqual(["GPT", "Block_1", "Linear_2"]);
});
