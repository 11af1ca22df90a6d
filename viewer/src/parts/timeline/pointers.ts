// Mouse and touch on the timeline's canvas.
//
// A drag pans; with Shift, or on the ruler, it marks a range; on an edge of the range it moves that edge. Two fingers zoom and pan
// at the same time. A press without movement is a click.

import { kRulerHeight, type TimelineModel } from "./model";
import { panView, timeToX, xToTime, zoomView } from "./view";

const kClickPixels = 4;
const kTapPixels = 10; // fingers are less steady
const kEdgePixels = 5;
const kFingerEdgePixels = 16;
const kMinPinchPixels = 20; // fingers closer together would make the zoom jump

export interface PointerPlace {
  x: number;
  y: number;
  clientX: number;
  clientY: number;
}

export interface PointerTarget {
  hover(place: PointerPlace | null): void;
  click(place: PointerPlace): void;
  scrollBy(pixels: number): void;
}

interface Drag {
  type: "pan" | "range";
  start: PointerPlace;
  last: PointerPlace;
  slack: number; // a click until it has moved this far
  moved: boolean;
  fixedNs: number; // the end of the range that does not move
}

interface Pinch {
  x: number; // between the fingers
  y: number;
  distance: number;
}

export class TimelinePointers {
  // The mouse position, at which keys zoom.
  place: PointerPlace | null = null;
  private readonly down = new Map<number, PointerPlace>();
  private drag: Drag | null = null;
  private pinch: Pinch | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
    private readonly target: PointerTarget,
    options: { signal: AbortSignal },
  ) {
    canvas.addEventListener("pointerdown", (e) => this.pressed(e), options);
    canvas.addEventListener("pointermove", (e) => this.moved(e), options);
    canvas.addEventListener("pointerup", (e) => this.released(e, true), options);
    canvas.addEventListener("pointercancel", (e) => this.released(e, false), options);
    canvas.addEventListener("pointerleave", () => this.left(), options);
  }

  placeOf(event: MouseEvent): PointerPlace {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, clientX: event.clientX, clientY: event.clientY };
  }

  private pressed(event: PointerEvent): void {
    if (event.button !== 0 || this.down.size === 2) return;
    const place = this.placeOf(event);
    this.down.set(event.pointerId, place);
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.focus({ preventScroll: true });
    this.target.hover(null);
    event.preventDefault();
    if (this.down.size === 2) {
      this.endDrag();
      this.pinch = this.fingers();
    } else {
      this.drag = this.beginDrag(event, place);
    }
  }

  private beginDrag(event: PointerEvent, place: PointerPlace): Drag {
    const isFinger = event.pointerType === "touch";
    const edge = event.shiftKey ? null : this.edgeAt(place, isFinger ? kFingerEdgePixels : kEdgePixels);
    const isRange = edge !== null || event.shiftKey || place.y < kRulerHeight;
    return {
      type: isRange ? "range" : "pan",
      start: place,
      last: place,
      slack: isFinger ? kTapPixels : kClickPixels,
      moved: false,
      fixedNs: edge ?? xToTime(this.model.view, this.model.width, place.x),
    };
  }

  // If `place` is on an edge of the range: the other end.
  private edgeAt(place: PointerPlace, slack: number): number | null {
    const range = this.model.range.value;
    if (!range) return null;
    const { view, width } = this.model;
    const fromX = Math.abs(timeToX(view, width, range.fromNs) - place.x);
    const toX = Math.abs(timeToX(view, width, range.toNs) - place.x);
    if (Math.min(fromX, toX) > slack) return null;
    return fromX < toX ? range.toNs : range.fromNs;
  }

  private moved(event: PointerEvent): void {
    const place = this.placeOf(event);
    if (event.pointerType !== "touch") this.place = place;
    if (this.down.size === 0) {
      const onEdge = this.edgeAt(place, kEdgePixels) !== null;
      this.canvas.classList.toggle("on-edge", onEdge);
      this.target.hover(onEdge ? null : place);
      return;
    }
    if (!this.down.has(event.pointerId)) return;
    this.down.set(event.pointerId, place);
    if (this.pinch) this.pinched();
    else if (this.drag) this.dragged(this.drag, place);
  }

  private dragged(drag: Drag, place: PointerPlace): void {
    const { model } = this;
    const isStill =
      Math.abs(place.x - drag.start.x) < drag.slack && Math.abs(place.y - drag.start.y) < drag.slack;
    if (!drag.moved && isStill) return;
    drag.moved = true;
    if (drag.type === "range") {
      // A panel that opens now would move the lanes under the pointer.
      if (!model.panelOpen) model.dragging.value = true;
      model.setRange({ fromNs: drag.fixedNs, toNs: xToTime(model.view, model.width, place.x) });
    } else {
      this.pan(drag.last, place);
      drag.last = place;
      this.canvas.classList.add("grabbed");
    }
  }

  private pan(from: { x: number; y: number }, to: { x: number; y: number }): void {
    const { model } = this;
    const ns = ((from.x - to.x) / model.width) * (model.view.toNs - model.view.fromNs);
    model.setView(panView(model.view, ns, model.lanes.endNs));
    this.target.scrollBy(from.y - to.y);
  }

  private fingers(): Pinch {
    const [a, b] = [...this.down.values()];
    const distance = Math.max(kMinPinchPixels, Math.hypot(a.x - b.x, a.y - b.y));
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, distance };
  }

  // What is between the fingers stays between them.
  private pinched(): void {
    const { model } = this;
    const before = this.pinch!;
    const now = (this.pinch = this.fingers());
    const atNs = xToTime(model.view, model.width, before.x);
    model.setView(zoomView(model.view, now.distance / before.distance, atNs, model.lanes.endNs));
    this.pan(before, now);
  }

  private released(event: PointerEvent, isUp: boolean): void {
    if (!this.down.delete(event.pointerId)) return;
    const { drag } = this;
    if (this.pinch) {
      // The remaining finger pans; lifting it is not a click.
      const [rest] = this.down.values();
      this.pinch = null;
      if (rest) this.drag = { type: "pan", start: rest, last: rest, slack: 0, moved: true, fixedNs: 0 };
      return;
    }
    this.endDrag();
    if (isUp && drag && !drag.moved) this.target.click(this.placeOf(event));
  }

  private endDrag(): void {
    this.drag = null;
    this.model.dragging.value = false;
    this.canvas.classList.remove("grabbed");
  }

  private left(): void {
    this.place = null;
    if (this.down.size === 0) this.target.hover(null);
  }
}
