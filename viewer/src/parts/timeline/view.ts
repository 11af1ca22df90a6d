// The visible span of time, and the arithmetic of moving it. Pure: no document, no drawing.

import { tileSpanNs } from "../../data/tiles";

export interface View {
  fromNs: number;
  toNs: number;
}

// There is nothing to see at a closer zoom: times are whole nanoseconds.
const kMinSpanNs = 40;
// How far the view may extend past the ends of the trace, as a share of its span.
const kOverscroll = 0.1;

export function timeToX(view: View, width: number, ns: number): number {
  return ((ns - view.fromNs) / (view.toNs - view.fromNs)) * width;
}

export function xToTime(view: View, width: number, x: number): number {
  return view.fromNs + (x / width) * (view.toNs - view.fromNs);
}

// Keeps a view inside the trace (with some overscroll), and its span sensible.
export function clampView(view: View, endNs: number): View {
  const whole = Math.max(endNs, kMinSpanNs);
  const middle = (view.fromNs + view.toNs) / 2;
  let span = view.toNs - view.fromNs;
  if (!Number.isFinite(span) || !Number.isFinite(middle)) return { fromNs: 0, toNs: whole };
  span = Math.min(Math.max(span, kMinSpanNs), whole * (1 + 2 * kOverscroll));
  const slack = span * kOverscroll;
  const fromNs = Math.min(Math.max(middle - span / 2, -slack), Math.max(whole + slack - span, -slack));
  return { fromNs, toNs: fromNs + span };
}

// A `factor` above 1 zooms in; `atNs` stays where it is on the screen.
export function zoomView(view: View, factor: number, atNs: number, endNs: number): View {
  const span = Math.min(
    Math.max((view.toNs - view.fromNs) / factor, kMinSpanNs),
    Math.max(endNs, kMinSpanNs) * (1 + 2 * kOverscroll),
  );
  const share = (atNs - view.fromNs) / (view.toNs - view.fromNs);
  const fromNs = atNs - share * span;
  return clampView({ fromNs, toNs: fromNs + span }, endNs);
}

export function panView(view: View, ns: number, endNs: number): View {
  return clampView({ fromNs: view.fromNs + ns, toNs: view.toNs + ns }, endNs);
}

// A view of [startNs, startNs + durationNs] with a margin.
export function fitView(startNs: number, durationNs: number, endNs: number, margin = 0.15): View {
  const span = Math.max(durationNs, kMinSpanNs / 2);
  return clampView({ fromNs: startNs - span * margin, toNs: startNs + span * (1 + margin) }, endNs);
}

// Moves the view so that the place is visible. Keeps the zoom, unless the place would be a speck or would not fit.
export function revealView(view: View, startNs: number, durationNs: number, endNs: number): View {
  const span = view.toNs - view.fromNs;
  if (durationNs > span || durationNs < span / 400) {
    const want = durationNs > span ? durationNs * 1.3 : Math.max(durationNs * 40, kMinSpanNs);
    const middle = startNs + durationNs / 2;
    return clampView({ fromNs: middle - want / 2, toNs: middle + want / 2 }, endNs);
  }
  if (startNs >= view.fromNs && startNs + durationNs <= view.toNs) return view;
  const middle = startNs + durationNs / 2;
  return clampView({ fromNs: middle - span / 2, toNs: middle + span / 2 }, endNs);
}

// The view after its width changed from `before` to `after` pixels, at the same scale; `keepNs` stays visible.
export function resizedView(view: View, before: number, after: number, keepNs: number | null, endNs: number): View {
  const span = ((view.toNs - view.fromNs) * after) / before;
  const lastNs = view.fromNs + 0.9 * span;
  const shift = keepNs !== null && keepNs > lastNs ? keepNs - lastNs : 0;
  return clampView({ fromNs: view.fromNs + shift, toNs: view.fromNs + shift + span }, endNs);
}

// The level whose bins are at most a pixel wide.
export function levelFor(view: View, width: number): number {
  const nsPerPixel = (view.toNs - view.fromNs) / Math.max(1, width);
  return Math.max(0, Math.floor(Math.log2(nsPerPixel)));
}

// The first and last tile in the view, within the trace.
export function visibleTiles(view: View, level: number, endNs: number): { first: number; last: number } {
  const span = tileSpanNs(level);
  const lastOfTrace = Math.max(0, Math.floor(Math.max(0, endNs - 1) / span));
  const first = Math.min(lastOfTrace, Math.max(0, Math.floor(view.fromNs / span)));
  const last = Math.min(lastOfTrace, Math.max(first, Math.ceil(view.toNs / span) - 1));
  return { first, last };
}

// The distance of ruler ticks: 1, 2 or 5 times a power of ten, at least `minPixels`.
export function rulerStepNs(view: View, width: number, minPixels: number): number {
  const min = ((view.toNs - view.fromNs) / Math.max(1, width)) * minPixels;
  const power = 10 ** Math.floor(Math.log10(Math.max(min, 1)));
  for (const times of [1, 2, 5]) if (times * power >= min) return times * power;
  return 10 * power;
}

// A view between two others, for animations. The span is interpolated geometrically, so that zooming looks even.
export function interpolateViews(a: View, b: View, share: number): View {
  const spanA = a.toNs - a.fromNs;
  const spanB = b.toNs - b.fromNs;
  const span = spanA * (spanB / spanA) ** share;
  const weight = Math.abs(spanB - spanA) < 1e-6 * spanA ? share : (span - spanA) / (spanB - spanA);
  const fromNs = a.fromNs + (b.fromNs - a.fromNs) * weight;
  return { fromNs, toNs: fromNs + span };
}
