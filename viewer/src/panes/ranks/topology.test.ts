import { expect, test } from "vitest";
import type { JobGroup, JobLayout } from "../../data/job_answers";
import { kindsOf, placeRanks, setsOf } from "./topology";

const group = (kind: string, ranks: number[], waitNs = 1): JobGroup => ({
  id: 0,
  kind,
  description: "",
  pair: ranks.length === 2,
  waitNs,
  transferNs: 0,
  ranks,
});

const layout: JobLayout = {
  fromNs: 0,
  toNs: 1,
  hosts: ["a", "b"],
  ranks: [
    [0, 0, 0],
    [1, 0, -1],
    [2, 1, 1],
    [3, 1, 2],
  ],
  firstRanks: [],
  heatValues: ["step"],
  steps: [],
  groups: [group("tensor parallel", [0, 1]), group("tensor parallel", [2, 3]), group("pipeline", [0, 2], 9)],
};

test("kinds of groups are listed by what they cost", () => {
  expect(kindsOf(layout).map(({ kind, groups }) => [kind, groups.length])).toEqual([
    ["pipeline", 1],
    ["tensor parallel", 2],
  ]);
});

test("ranks stand on the line of their host, in the color of their group", () => {
  const placed = placeRanks(layout, layout.groups.slice(0, 2));
  expect(placed.map(({ line, column, group }) => [line, column, group])).toEqual([
    [0, 0, 0],
    [0, 1, 0],
    [1, 0, 1],
    [1, 1, 1],
  ]);
});

test("the pairs of a pipeline are one set, and a rank outside of it has none", () => {
  const sets = setsOf([group("pipeline", [4, 6]), group("pipeline", [6, 8]), group("pipeline", [5, 7])]);
  expect([sets.get(4), sets.get(8), sets.get(5), sets.get(9)]).toEqual([0, 0, 1, undefined]);
});
