// The timeline of chosen ranks as geometry: windows, arrows between ranks, what is under the pointer. Pure.

import type { AxisWindow } from "../../data/job_client";
import type { JobTimeline, LanePiece, PathPiece, RankLane } from "../../data/job_answers";

export const kLanePx = 30;
export const kRulerPx = 22;
const kMostArrows = 400;
const kLeastWaitPx = 5; // a shorter wait gets no arrow

export function clampWindow(window: AxisWindow, whole: AxisWindow): AxisWindow {
  const span = Math.max(1000, Math.min(window.toNs - window.fromNs, whole.toNs - whole.fromNs));
  const fromNs = Math.max(whole.fromNs, Math.min(window.fromNs, whole.toNs - span));
  return { fromNs, toNs: fromNs + span };
}

// Zooms by `factor` around a moment that stays where it is.
export function zoomWindow(window: AxisWindow, atNs: number, factor: number, whole: AxisWindow): AxisWindow {
  return clampWindow(
    { fromNs: atNs - (atNs - window.fromNs) * factor, toNs: atNs + (window.toNs - atNs) * factor },
    whole,
  );
}

// What is asked for: more than what is seen, at steps of a power of two, so that panning and zooming ask rarely and the same.
export function fetchedWindow(window: AxisWindow, whole: AxisWindow): AxisWindow {
  const span = 2 ** Math.ceil(Math.log2(Math.max(1, window.toNs - window.fromNs)));
  const fromNs = Math.floor((window.fromNs - whole.fromNs) / (span / 2)) * (span / 2) + whole.fromNs - span / 2;
  return { fromNs: Math.max(whole.fromNs, fromNs), toNs: Math.min(whole.toNs, fromNs + 2.5 * span) };
}

export interface Arrow {
  fromLane: number;
  toLane: number;
  fromNs: number; // the arrival that was waited for
  toNs: number; // when the waiting ended
}

interface Met {
  lane: number;
  piece: LanePiece;
}

// From the rank that arrived last, or that sends, to those that waited for it. Only between lanes that are shown.
export function arrowsOf(timeline: JobTimeline, window: AxisWindow, widthPx: number): Arrow[] {
  const leastNs = ((window.toNs - window.fromNs) / widthPx) * kLeastWaitPx;
  const met = new Map<number, Met[]>();
  timeline.lanes.forEach((lane, at) => {
    for (const piece of lane.pieces) {
      const id = piece[3];
      if (id < 0 || piece[2] < window.fromNs || piece[0] > window.toNs) continue;
      const known = met.get(id);
      if (known) known.push({ lane: at, piece });
      else met.set(id, [{ lane: at, piece }]);
    }
  });
  const arrows: Arrow[] = [];
  for (const members of met.values()) {
    if (members.length < 2) continue;
    const sender = members.find(({ piece }) => piece[6] === 1);
    const last = sender ?? members.reduce((a, b) => (b.piece[0] > a.piece[0] ? b : a));
    for (const each of members) {
      if (each === last || each.piece[1] - each.piece[0] < leastNs) continue;
      arrows.push({ fromLane: last.lane, toLane: each.lane, fromNs: last.piece[0], toNs: each.piece[1] });
      if (arrows.length >= kMostArrows) return arrows;
    }
  }
  return arrows;
}

export interface PathLine {
  lane: number; // -1: a rank that is not shown
  rank: number;
  fromNs: number;
  toNs: number;
  kind: number;
}

export function pathLines(path: readonly PathPiece[], lanes: readonly RankLane[]): PathLine[] {
  const laneOf = new Map(lanes.map((lane, at) => [lane.rank, at]));
  return path.map(([rank, fromNs, toNs, kind]) => ({ lane: laneOf.get(rank) ?? -1, rank, fromNs, toNs, kind }));
}

// The ranks that hold the path for longest, for "show them".
export function ranksOnPath(path: readonly PathPiece[], most: number): number[] {
  const times = new Map<number, number>();
  for (const [rank, fromNs, toNs, kind] of path) if (kind === 0) times.set(rank, (times.get(rank) ?? 0) + toNs - fromNs);
  const order = [...times].sort((a, b) => b[1] - a[1]).slice(0, most);
  return order.map(([rank]) => rank).sort((a, b) => a - b);
}

export interface Found {
  lane: number;
  atNs: number;
  piece: LanePiece | null; // null: the rank works, or the lane has only bins
}

export function findAt(timeline: JobTimeline, window: AxisWindow, widthPx: number, x: number, y: number): Found | null {
  const lane = Math.floor((y - kRulerPx) / kLanePx);
  if (y < kRulerPx || lane >= timeline.lanes.length) return null;
  const pixelNs = (window.toNs - window.fromNs) / widthPx;
  const atNs = window.fromNs + x * pixelNs;
  let best: LanePiece | null = null;
  for (const piece of timeline.lanes[lane].pieces) {
    // Short ones can be hit as well: they are drawn at least a pixel wide.
    if (piece[0] - pixelNs <= atNs && atNs <= piece[2] + pixelNs) best = piece;
  }
  return { lane, atNs, piece: best };
}

// A moment of the axis in the rank's own trace: clocks drift evenly over the window.
export function inTrace(lane: RankLane, timeline: JobTimeline, atNs: number): number {
  const share = (atNs - timeline.fromNs) / Math.max(1, timeline.toNs - timeline.fromNs);
  return Math.round(lane.traceFromNs + share * (lane.traceToNs - lane.traceFromNs));
}

// "0, 3, 8-11" as numbers, without repeats, of those that are there. "" for a text that is not like that.
export function parseRanks(text: string, known: ReadonlySet<number>, most = 64): number[] {
  const out = new Set<number>();
  for (const part of text.split(/[\s,]+/)) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!match) continue;
    const last = Math.min(Number(match[2] ?? match[1]), Number(match[1]) + 100_000);
    for (let rank = Number(match[1]); rank <= last && out.size < most; ++rank) if (known.has(rank)) out.add(rank);
  }
  return [...out].sort((a, b) => a - b);
}

export function formatRanks(ranks: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < ranks.length; ) {
    let end = i;
    while (end + 1 < ranks.length && ranks[end + 1] === ranks[end] + 1) ++end;
    parts.push(end > i + 1 ? `${ranks[i]}-${ranks[end]}` : ranks.slice(i, end + 1).join(","));
    i = end + 1;
  }
  return parts.join(",");
}
