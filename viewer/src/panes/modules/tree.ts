// Rows of the modules table as a tree, and which of them are visible in what order. Pure.

import type { Cell, Column } from "../../data/answers";
import { type Sort, sortRows } from "../../parts/table/rows";

export interface TreeNode {
  row: Cell[];
  index: number; // of its row: the key of its expanded state
  depth: number;
  children: TreeNode[];
}

// Rows come in depth-first order, each with its depth. A row that skips a level becomes a child of the last shallower row.
export function buildTree(columns: readonly Column[], rows: readonly Cell[][]): TreeNode[] {
  const depthAt = columns.findIndex((column) => column.name === "depth");
  const roots: TreeNode[] = [];
  const path: TreeNode[] = [];
  rows.forEach((row, index) => {
    const depth = depthAt >= 0 ? Number(row[depthAt] ?? 0) : 0;
    while (path.length > 0 && path[path.length - 1].depth >= depth) path.pop();
    const node: TreeNode = { row, index, depth, children: [] };
    (path.length > 0 ? path[path.length - 1].children : roots).push(node);
    path.push(node);
  });
  return roots;
}

// Sorts siblings among themselves, so that the tree stays a tree.
export function visibleNodes(
  roots: readonly TreeNode[],
  options: { columns: readonly Column[]; sort: Sort | null; isExpanded: (node: TreeNode) => boolean },
): TreeNode[] {
  const out: TreeNode[] = [];
  const walk = (nodes: readonly TreeNode[]) => {
    const byRow = new Map(nodes.map((node) => [node.row, node]));
    for (const row of sortRows({ columns: [...options.columns] }, [...byRow.keys()], options.sort)) {
      const node = byRow.get(row)!;
      out.push(node);
      if (options.isExpanded(node)) walk(node.children);
    }
  };
  walk(roots);
  return out;
}

// The matching nodes and their ancestors.
export function matchingNodes(roots: readonly TreeNode[], matches: (row: Cell[]) => boolean): TreeNode[] {
  return roots.flatMap((node) => {
    const children = matchingNodes(node.children, matches);
    return children.length > 0 || matches(node.row) ? [{ ...node, children }] : [];
  });
}
