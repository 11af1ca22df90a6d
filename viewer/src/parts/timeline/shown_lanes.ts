// Which lanes are shown and how: what the user pinned, collapsed, hid and filtered, and the resulting layout.

import { computed, type Signal, signal } from "@preact/signals";
import type { Lane, Lanes } from "../../data/answers";
import { collapsedByDefault, compactByDefault, groupKey, laneKey, type LaneOptions, layOut, placeOf } from "./layout";
import type { TimelineUrl } from "./timeline_url";

export class ShownLanes {
  readonly options: Signal<LaneOptions>;
  readonly layout = computed(() => layOut(this.lanes, this.options.value));

  constructor(private readonly lanes: Lanes) {
    this.options = signal(this.defaults());
  }

  toggle(set: "hidden" | "pinned" | "collapsed", key: string): void {
    const next = new Set(this.options.value[set]);
    if (!next.delete(key)) next.add(key);
    this.options.value = { ...this.options.value, [set]: next };
  }

  setFilter(filter: string): void {
    this.options.value = { ...this.options.value, filter };
  }

  toggleCompact(): void {
    this.options.value = { ...this.options.value, compact: !this.options.value.compact };
  }

  showAll(): void {
    this.options.value = { ...this.options.value, hidden: new Set(), filter: "" };
  }

  // Makes a lane visible before a jump to one of its slices: unhides and expands it, and clears a filter that excludes it.
  reveal(lane: Lane): void {
    const { hidden, filter, collapsed } = this.options.value;
    const keys = [laneKey(lane.id), groupKey(lane.group)];
    if (placeOf(this.layout.value, lane, 0) && !keys.some((key) => collapsed.has(key))) return;
    const without = (set: ReadonlySet<string>) => new Set([...set].filter((key) => !keys.includes(key)));
    const opened = { ...this.options.value, hidden: without(hidden), collapsed: without(collapsed) };
    const passes = placeOf(layOut(this.lanes, opened), lane, 0) !== null;
    this.options.value = { ...opened, filter: passes ? filter : "" };
  }

  // Defaults are left out of the link.
  toUrl(): Pick<TimelineUrl, keyof LaneOptions> {
    const now = this.options.value;
    const { compact, collapsed } = this.defaults();
    return {
      ...now,
      compact: now.compact === compact ? null : now.compact,
      collapsed: sameKeys(now.collapsed, collapsed) ? null : now.collapsed,
    };
  }

  fromUrl({ filter, hidden, pinned, collapsed, compact }: Pick<TimelineUrl, keyof LaneOptions>): void {
    const first = this.defaults();
    const next = { filter, hidden, pinned, collapsed: collapsed ?? first.collapsed, compact: compact ?? first.compact };
    this.options.value = next;
  }

  private defaults(): LaneOptions {
    const { lanes } = this;
    return {
      filter: "",
      hidden: new Set(),
      pinned: new Set(),
      collapsed: collapsedByDefault(lanes),
      compact: compactByDefault(lanes),
    };
  }
}

function sameKeys(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((key) => b.has(key));
}
