// Wheel and keyboard input of the timeline; `pointers.ts` has mouse and touch.

import { isTyping } from "../../page/typing";
import { type HeldAction, isHeld, type KeyAction, keyAction } from "./keys";
import type { TimelineModel } from "./model";
import { type PointerTarget, TimelinePointers } from "./pointers";
import { panView, xToTime, zoomView } from "./view";

const kPanSharePerSecond = 1.6;
const kZoomPerSecond = 6;
const kTapSeconds = 0.05; // a tap moves at least this much

export interface InputTarget extends PointerTarget {
  doubleClick(): void;
  focusSearch(): void;
}

export class TimelineInput {
  private readonly abort = new AbortController();
  private readonly down = new Set<HeldAction>();
  private readonly pointers: TimelinePointers;
  private lastFrame = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
    private readonly target: InputTarget,
  ) {
    const options = { signal: this.abort.signal };
    this.pointers = new TimelinePointers(canvas, model, target, options);
    canvas.addEventListener("dblclick", () => target.doubleClick(), options);
    canvas.addEventListener("wheel", (e) => this.wheel(e), { ...options, passive: false });
    window.addEventListener("keydown", (e) => this.keyDown(e), options);
    window.addEventListener("keyup", (e) => this.keyUp(e), options);
    window.addEventListener("blur", () => this.down.clear(), options);
  }

  dispose(): void {
    this.abort.abort();
  }

  // Moves the view for the keys that are down; true while there are any.
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
    const { place } = this.pointers;
    this.model.zoom(factor, place ? xToTime(this.model.view, this.model.width, place.x) : undefined);
  }

  // Ctrl zooms (a trackpad's pinch arrives as Ctrl and wheel); sideways or with Shift pans; vertical scrolling is left to the box.
  private wheel(event: WheelEvent): void {
    const { model } = this;
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? model.height : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const atNs = xToTime(model.view, model.width, this.pointers.placeOf(event).x);
      // A mouse wheel moves in steps of about 100, a pinch by a few.
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
    // Arrow keys belong to the focused element (a table, the scrolling panel).
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
    if (action && isHeld(action)) this.down.delete(action);
  }

  private act(action: Exclude<KeyAction, HeldAction>): void {
    const { model } = this;
    switch (action) {
      case "fit":
        return model.fit();
      case "mark":
        return model.markSelection();
      case "previous":
        return model.jumps.sameName(-1);
      case "next":
        return model.jumps.sameName(1);
      case "parent":
        return model.jumps.parent();
      case "child":
        return model.jumps.firstChild();
      case "longest":
        return model.jumps.longest();
      case "next-gap":
        return void model.jumps.nextGap(1);
      case "previous-gap":
        return void model.jumps.nextGap(-1);
      case "next-step":
        return model.jumps.nextStep(1);
      case "previous-step":
        return model.jumps.nextStep(-1);
      case "compact":
        return model.shown.toggleCompact();
      case "search":
        return this.target.focusSearch();
      case "clear":
        return model.clear();
    }
  }
}
