// The timeline's part of the link: short, readable keys that start with `timeline.`. Pure.

import type { LaneOptions } from "./layout";
import type { View } from "./view";

export const kWholeTrace = null;

// Null: the default.
export interface TimelineUrl extends Omit<LaneOptions, "compact" | "collapsed"> {
  compact: boolean | null;
  collapsed: ReadonlySet<string> | null;
  view: View | null; // null: the whole trace
  scroll: number;
  selected: string; // a ref, or ""
  range: View | null;
  search: string;
}

const kPrefix = "timeline.";
const kNone = "-";

export function toUrlKeys(state: TimelineUrl): Record<string, string | null> {
  const out: Record<string, string | null> = {
    view: span(state.view),
    y: state.scroll > 0 ? String(Math.round(state.scroll)) : null,
    sel: state.selected,
    range: span(state.range),
    search: state.search,
    filter: state.filter,
    hide: list(state.hidden),
    pin: list(state.pinned),
    collapse: state.collapsed && (list(state.collapsed) || kNone),
    rows: state.compact === null ? null : state.compact ? "compact" : "tall",
  };
  return Object.fromEntries(Object.entries(out).map(([key, value]) => [kPrefix + key, value === "" ? null : value]));
}

export function fromUrlKeys(keys: Readonly<Record<string, string>>): TimelineUrl {
  const text = (key: string) => keys[kPrefix + key] ?? "";
  const ref = text("sel");
  return {
    view: parseSpan(text("view")),
    scroll: Math.max(0, Number(text("y")) || 0),
    selected: /^[hd]\d+$/.test(ref) ? ref : "",
    range: parseSpan(text("range")),
    search: text("search"),
    filter: text("filter"),
    hidden: parseList(text("hide")),
    pinned: parseList(text("pin")),
    collapsed: text("collapse") === "" ? null : parseList(text("collapse").replace(/^-$/, "")),
    compact: text("rows") === "" ? null : text("rows") === "compact",
  };
}

function span(view: View | null): string | null {
  return view && `${rounded(view.fromNs)}:${rounded(view.toNs)}`;
}

// Whole nanoseconds are enough for a link.
function rounded(ns: number): string {
  return String(Math.round(ns));
}

function parseSpan(text: string): View | null {
  const match = /^(-?\d+):(-?\d+)$/.exec(text);
  if (!match) return null;
  const [fromNs, toNs] = [Number(match[1]), Number(match[2])];
  return toNs > fromNs ? { fromNs, toNs } : null;
}

// Group names may contain commas.
function list(keys: ReadonlySet<string>): string {
  return [...keys].map((key) => key.replaceAll("\\", "\\\\").replaceAll(",", "\\,")).join(",");
}

function parseList(text: string): Set<string> {
  const out = new Set<string>();
  for (const part of text.match(/(?:\\.|[^,\\])+/g) ?? []) out.add(part.replace(/\\(.)/g, "$1"));
  return out;
}
