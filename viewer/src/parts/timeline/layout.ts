// The vertical layout of lanes, counters and group headings. Pure.
//
// Pinned lanes are in a strip at the top that does not scroll; the others follow by group, in the server's order, with a group's
// counters below its lanes.

import type { CounterTrack, Lane, Lanes } from "../../data/answers";

export const kRowHeight = 18;
export const kCompactRowHeight = 12;
export const kCollapsedHeight = 20;
export const kGroupHeight = 24;
export const kCounterHeight = 40;
const kLaneGap = 5;
const kManyRows = 30;
const kQuietTimes = 12;

export interface LaneOptions {
  filter: string; // words in the name of a lane or group, ignoring case
  hidden: ReadonlySet<string>; // keys of blocks
  pinned: ReadonlySet<string>;
  collapsed: ReadonlySet<string>; // keys of lanes and groups
  compact: boolean; // lower rows, so that deep stacks and devices fit on one screen
}

export type Block =
  | { type: "group"; key: string; y: number; height: number; name: string; collapsed: boolean; lanes: number }
  | {
      type: "lane";
      key: string;
      y: number;
      height: number;
      rowHeight: number;
      collapsed: boolean;
      pinned: boolean;
      lane: Lane;
    }
  | { type: "counter"; key: string; y: number; height: number; pinned: boolean; track: CounterTrack };

export interface Layout {
  pinned: Block[];
  pinnedHeight: number;
  scrolled: Block[]; // y is relative to the top of the scrolled part
  height: number; // of the scrolled part
  hiddenCount: number; // by the user, not by the filter
}

export function laneKey(lane: number): string {
  return `l${lane}`;
}
function counterKey(track: number): string {
  return `c${track}`;
}
export function groupKey(name: string): string {
  return `g${name}`;
}

// With many rows, threads and devices would not fit on one screen.
export function compactByDefault(lanes: Lanes): boolean {
  return lanes.lanes.reduce((rows, lane) => rows + Math.max(1, lane.rows), 0) > kManyRows;
}

// Where there are many rows, threads with hardly any slices compared to the busiest (loaders, queues) would push the devices off
// the screen.
export function collapsedByDefault(lanes: Lanes): Set<string> {
  const threads = lanes.lanes.filter((lane) => lane.kind === "thread");
  const most = Math.max(0, ...threads.map((lane) => lane.slices));
  const quiet = compactByDefault(lanes)
    ? threads.filter((lane) => lane.rows > 2 && lane.slices * kQuietTimes < most)
    : [];
  return new Set(quiet.map((lane) => laneKey(lane.id)));
}

export function layOut(lanes: Lanes, options: LaneOptions): Layout {
  const matches = matcher(options.filter);
  const shown = (key: string, group: string, name: string) => !options.hidden.has(key) && matches(group, name);
  const pinned: Block[] = [];
  const scrolled: Block[] = [];

  let pinnedHeight = 0;
  for (const block of [
    ...lanes.lanes.map((l) => laneBlock(l, options, 0)),
    ...lanes.counters.map((c) => counterBlock(c, true, 0)),
  ]) {
    if (!options.pinned.has(block.key) || options.hidden.has(block.key)) continue;
    block.y = pinnedHeight;
    pinnedHeight += block.height + kLaneGap;
    pinned.push(block);
  }

  let y = 0;
  for (const name of groupNames(lanes)) {
    const own = lanes.lanes.filter(
      (lane) =>
        lane.group === name && !options.pinned.has(laneKey(lane.id)) && shown(laneKey(lane.id), name, lane.name),
    );
    const tracks = lanes.counters.filter(
      (track) =>
        track.group === name &&
        !options.pinned.has(counterKey(track.id)) &&
        shown(counterKey(track.id), name, track.name),
    );
    if (own.length + tracks.length === 0) continue;
    const collapsed = options.collapsed.has(groupKey(name));
    scrolled.push({ type: "group", key: groupKey(name), y, height: kGroupHeight, name, collapsed, lanes: own.length });
    y += kGroupHeight;
    if (collapsed) continue;
    for (const lane of own) {
      const block = laneBlock(lane, options, y);
      scrolled.push(block);
      y += block.height + kLaneGap;
    }
    for (const track of tracks) {
      const block = counterBlock(track, false, y);
      scrolled.push(block);
      y += block.height + kLaneGap;
    }
  }
  return { pinned, pinnedHeight, scrolled, height: y, hiddenCount: options.hidden.size };
}

function laneBlock(lane: Lane, options: LaneOptions, y: number): Block {
  const key = laneKey(lane.id);
  const collapsed = options.collapsed.has(key);
  const rows = Math.max(1, lane.rows);
  const open = options.compact ? kCompactRowHeight : kRowHeight;
  const height = collapsed ? kCollapsedHeight : Math.max(kRowHeight, rows * open);
  // The rows of a collapsed lane share about the height of one; each has at least a pixel.
  const rowHeight = collapsed ? Math.max(1, height / rows) : open;
  return { type: "lane", key, y, height, rowHeight, collapsed, pinned: options.pinned.has(key), lane };
}

function counterBlock(track: CounterTrack, pinned: boolean, y: number): Block {
  return { type: "counter", key: counterKey(track.id), y, height: kCounterHeight, pinned, track };
}

function groupNames(lanes: Lanes): string[] {
  const names = new Set<string>();
  for (const lane of lanes.lanes) names.add(lane.group);
  for (const track of lanes.counters) names.add(track.group);
  return [...names];
}

function matcher(filter: string): (group: string, name: string) => boolean {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (group, name) => {
    const text = `${group} ${name}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

// The block at a height. There are few blocks: a linear search is fine.
export function blockAt(blocks: readonly Block[], y: number): Block | undefined {
  return blocks.find((block) => y >= block.y && y < block.y + block.height);
}

// The position of a slice; that of the group's heading if the group is collapsed; null if the lane is hidden.
export function placeOf(
  layout: Layout,
  lane: Lane,
  row: number,
): { y: number; height: number; pinned: boolean } | null {
  for (const blocks of [layout.pinned, layout.scrolled]) {
    for (const block of blocks) {
      if (block.type === "lane" && block.lane.id === lane.id) {
        const y = block.y + Math.min(row * block.rowHeight, Math.max(0, block.height - block.rowHeight));
        return { y, height: block.rowHeight, pinned: block.pinned };
      }
    }
  }
  const group = layout.scrolled.find((block) => block.key === groupKey(lane.group));
  return group ? { y: group.y, height: group.height, pinned: false } : null;
}
