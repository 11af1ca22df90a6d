// Mouse, wheel and keys on the timeline's canvas, turned into the model's actions.

import { isTyping } from "../app/shell_keys";
import { isHeld, type KeyAction, keyAction } from "./keys";
import { kRulerHeight, type TimelineModel } from "./model";
import { panView, xToTime, zoomView } from "./view";

const kClickPixels = 4;
const kPanSharePerSecond = 1.6;
const kZoomPerSecond = 6;
const kTapSeconds = 0.05; // the least that a key moves, however short the tap

export interface PointerPlace {
  x: number;
  y: number;
  clientX: number;
  clientY: number;
}

export interface InputTarget {
  hover(place: PointerPlace | null): void;
  click(place: PointerPlace): void;
  doubleClick(): void;
  focusSearch(): void;
  scrollBy(pixels: number): void;
}

export class TimelineInput {
  private readonly abort = new AbortController();
  private readonly down = new Set<KeyAction>();
  private drag: {
    type: "pan" | "range";
    startX: number;
    lastX: number;
    lastY: number;
    moved: boolean;
    startNs: number;
  } | null = null;
  private pointer: PointerPlace | null = null;
  private lastFrame = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
    private readonly target: InputTarget,
  ) {
    const options = { signal: this.abort.signal };
    canvas.addEventListener("pointerdown", (e) => this.pointerDown(e), options);
    canvas.addEventListener("pointermove", (e) => this.pointerMove(e), options);
    canvas.addEventListener("pointerup", (e) => this.pointerUp(e), options);
    canvas.addEventListener("pointercancel", () => this.endDrag(), options);
    canvas.addEventListener("pointerleave", () => this.leave(), options);
    canvas.addEventListener("dblclick", () => target.doubleClick(), options);
    canvas.addEventListener("wheel", (e) => this.wheel(e), { ...options, passive: false });
    window.addEventListener("keydown", (e) => this.keyDown(e), options);
    window.addEventListener("keyup", (e) => this.keyUp(e), options);
    window.addEventListener("blur", () => this.down.clear(), options);
  }

  dispose(): void {
    this.abort.abort();
  }

  // Moves on for the keys that are down; true while there is one.
  frame(now: number): boolean {
    const seconds = Math.min(0.05, (now - this.lastFrame) / 1000);
    this.lastFrame = now;
    if (this.down.size === 0) return false;
    this.move(seconds);
    return true;
  }

  private move(seconds: number): void {
    if (this.down.has("pan-left")) this.model.pan(-kPanSharePerSecond * seconds);
    if (this.down.has("pan-right")) this.model.pan(kPanSharePerSecond * seconds);
    if (this.down.has("zoom-in")) this.zoom(kZoomPerSecond ** seconds);
    if (this.down.has("zoom-out")) this.zoom(kZoomPerSecond ** -seconds);
  }

  private zoom(factor: number): void {
    this.model.zoom(factor, this.pointer ? xToTime(this.model.view, this.model.width, this.pointer.x) : undefined);
  }

  private place(event: MouseEvent): PointerPlace {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, clientX: event.clientX, clientY: event.clientY };
  }

  private pointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const place = this.place(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.focus({ preventScroll: true });
    const type = event.shiftKey || place.y < kRulerHeight ? "range" : "pan";
    const startNs = xToTime(this.model.view, this.model.width, place.x);
    this.drag = { type, startX: place.x, lastX: place.x, lastY: place.y, moved: false, startNs };
    this.target.hover(null);
    event.preventDefault();
  }

  private pointerMove(event: PointerEvent): void {
    const place = this.place(event);
    this.pointer = place;
    const { drag, model } = this;
    if (!drag) {
      this.target.hover(place);
      return;
    }
    if (!drag.moved && Math.abs(place.x - drag.startX) < kClickPixels && Math.abs(place.y - drag.lastY) < kClickPixels)
      return;
    drag.moved = true;
    if (drag.type === "range") {
      model.dragging.value = true;
      model.setRange({ fromNs: drag.startNs, toNs: xToTime(model.view, model.width, place.x) });
    } else {
      const ns = ((drag.lastX - place.x) / model.width) * (model.view.toNs - model.view.fromNs);
      model.setView(panView(model.view, ns, model.lanes.endNs));
      this.target.scrollBy(drag.lastY - place.y);
      drag.lastX = place.x;
      drag.lastY = place.y;
      this.canvas.style.cursor = "grabbing";
    }
  }

  private pointerUp(event: PointerEvent): void {
    const { drag } = this;
    this.endDrag();
    if (drag && !drag.moved) this.target.click(this.place(event));
  }

  private endDrag(): void {
    this.drag = null;
    this.model.dragging.value = false;
    this.canvas.style.cursor = "";
  }

  private leave(): void {
    this.pointer = null;
    if (!this.drag) this.target.hover(null);
  }

  // Ctrl zooms (a pinch comes as that, too); sideways or with shift pans; up and down is left to the scrolling box.
  private wheel(event: WheelEvent): void {
    const { model } = this;
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? model.height : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const atNs = xToTime(model.view, model.width, this.place(event).x);
      // A mouse's wheel jumps by a hundred, a pinch by a few.
      const step = Math.max(-120, Math.min(120, event.deltaY * unit));
      model.setView(
        zoomView(model.view, Math.exp(-step * (Math.abs(step) < 30 ? 0.012 : 0.004)), atNs, model.lanes.endNs),
      );
      return;
    }
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (sideways !== 0 && (event.shiftKey || Math.abs(sideways) > Math.abs(event.deltaY))) {
      event.preventDefault();
      model.setView(
        panView(
          model.view,
          ((sideways * unit) / model.width) * (model.view.toNs - model.view.fromNs),
          model.lanes.endNs,
        ),
      );
    }
    this.target.hover(null);
  }

  private keyDown(event: KeyboardEvent): void {
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const action = keyAction(event);
    if (!action) return;
    // Arrows belong to whatever else has the focus (tables, the scrolling panel).
    const elsewhere =
      event.target instanceof HTMLElement && event.target !== this.canvas && event.target !== document.body;
    if (elsewhere && event.key.startsWith("Arrow")) return;
    event.preventDefault();
    this.target.hover(null);
    if (isHeld(action)) {
      if (!this.down.has(action)) {
        this.down.add(action);
        this.lastFrame = performance.now();
        this.move(kTapSeconds);
      }
      return;
    }
    this.act(action);
  }

  private keyUp(event: KeyboardEvent): void {
    const action = keyAction({ key: event.key });
    if (action) this.down.delete(action);
  }

  private act(action: KeyAction): void {
    const { model } = this;
    switch (action) {
      case "fit":
        return model.fit();
      case "mark":
        return model.markSelection();
      case "previous":
        return model.sameName(-1);
      case "next":
        return model.sameName(1);
      case "parent":
        return model.parent();
      case "child":
        return model.firstChild();
      case "longest":
        return model.longest();
      case "next-gap":
        return void model.nextGap(1);
      case "previous-gap":
        return void model.nextGap(-1);
      case "next-step":
        return model.nextStep(1);
      case "previous-step":
        return model.nextStep(-1);
      case "compact":
        return model.shown.toggleCompact();
      case "search":
        return this.target.focusSearch();
      case "clear":
        return model.clear();
    }
  }
}
