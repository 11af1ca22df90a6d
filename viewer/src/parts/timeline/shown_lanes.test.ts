import { expect, test } from "vitest";
import type { Lane, Lanes } from "../../data/answers";
import { placeOf } from "./layout";
import { ShownLanes } from "./shown_lanes";

const lane = (id: number, group: string, rows: number, slices: number): Lane => ({
  id,
  group,
  kind: "thread",
  name: `thread ${id}`,
  rows,
  slices,
  firstNs: 0,
  lastNs: 9,
  busyNs: 1,
});
const lanes: Lanes = {
  endNs: 10,
  lanes: [lane(0, "a", 40, 1000), lane(1, "a", 8, 5), lane(2, "b", 1, 5)],
  counters: [],
  steps: [],
  sampled: [],
};

test("defaults are left out of the link, and every change is restored from it", () => {
  const shown = new ShownLanes(lanes);
  expect(shown.toUrl()).toMatchObject({ compact: null, collapsed: null });
  shown.toggle("collapsed", "l1");
  shown.toggleCompact();
  shown.toggle("pinned", "l2");
  const other = new ShownLanes(lanes);
  other.fromUrl(shown.toUrl());
  expect(other.options.value).toEqual(shown.options.value);
  expect(shown.toUrl()).toMatchObject({ compact: false, collapsed: new Set() });
});

test("revealing a lane expands it and its group, unhides it, and clears a filter that excludes it", () => {
  const shown = new ShownLanes(lanes);
  shown.toggle("collapsed", "ga");
  shown.toggle("hidden", "l1");
  shown.setFilter("thread 2");
  shown.reveal(lanes.lanes[1]);
  expect(placeOf(shown.layout.value, lanes.lanes[1], 3)?.height).toBeGreaterThan(5);
  expect(shown.options.value).toMatchObject({ filter: "", hidden: new Set(), collapsed: new Set() });
});

test("a filter that includes the lane stays", () => {
  const shown = new ShownLanes(lanes);
  shown.setFilter("thread");
  shown.reveal(lanes.lanes[1]);
  expect(shown.options.value.filter).toBe("thread");
});
