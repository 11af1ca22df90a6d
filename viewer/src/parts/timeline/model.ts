// The timeline's state and actions. Components and the canvas read it; keys, mouse, panel and links change it. Search and jumps
// are in `jumps.ts`, which lanes are shown in `shown_lanes.ts`.
//
// What may change with every frame (the view) is a plain field, with `requestDraw` after a change; what components show is a
// signal.

import { effect, signal, untracked } from "@preact/signals";
import type { FoundSlice, Gap, Lane, Lanes, Report, SliceDetail } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import { TileLoader, type TileRange } from "../../data/tile_loader";
import { TileStore } from "../../data/tile_store";
import type { TimelinePlace } from "../../page/navigation";
import { kindText } from "../slice_colors";
import { formatDuration } from "../../text/format";
import { CounterLoader } from "./counter_loader";
import { dependsOn } from "./depends_on";
import { Jumps } from "./jumps";
import { kSettleMs, Latest } from "./latest";
import { placeOf } from "./layout";
import { ShownLanes } from "./shown_lanes";
import { kWholeTrace, type TimelineUrl } from "./timeline_url";
import {
  interpolateViews,
  clampView,
  fitView,
  levelFor,
  panView,
  resizedView,
  revealView,
  type View,
  visibleTiles,
  zoomView,
} from "./view";

const kTileBudgetBytes = 48 << 20;
const kAnimationMs = 160;
export const kRulerHeight = 36;

export interface Range {
  fromNs: number;
  toNs: number;
}

export class TimelineModel {
  readonly store: TileStore;
  readonly counters: CounterLoader;
  readonly laneOf = new Map<number, Lane>();
  readonly maxLevel: number;

  // Set by the canvas: its size, and how to scroll.
  width = 800;
  height = 400;
  scrollBox: (y: number) => void = () => {};
  private sized = false;
  private keepsScale = false; // a click opened or closed the panel, which is about to change the width
  requestDraw: () => void = () => {};
  announce = signal("");

  view: View;
  readonly viewChanged = signal(0); // counts changes, for components that follow the view
  readonly tilesChanged = signal(0);
  readonly scrollY = signal(0);
  readonly selected = signal<FoundSlice | null>(null);
  readonly detail = signal<SliceDetail | null>(null);
  readonly range = signal<Range | null>(null);
  readonly dragging = signal(false); // a range is being dragged: the panel opens afterwards
  readonly rangeReport = signal<Report | null>(null);
  readonly gap = signal<Gap | null>(null);
  readonly shown: ShownLanes;
  readonly jumps = new Jumps(this);
  readonly error = signal<string | null>(null);
  readonly coarse = signal(false); // this report has no finer tiles for the view

  private readonly loader: TileLoader | null;
  private readonly disposers: (() => void)[] = [];
  private animation: { from: View; to: View; start: number } | null = null;
  private readonly rangeRequest = new Latest((error) => this.fail(error));
  // In a report, the panel says that there are no details.
  private readonly sliceRequest = new Latest((error) => {
    if (!this.stored) this.fail(error);
  });

  constructor(
    readonly trace: TraceClient,
    readonly lanes: Lanes,
    private readonly animate: boolean,
  ) {
    for (const lane of lanes.lanes) this.laneOf.set(lane.id, lane);
    this.shown = new ShownLanes(lanes);
    this.view = clampView({ fromNs: 0, toNs: lanes.endNs }, lanes.endNs);
    const rootLevel = this.rootLevel(1024);
    this.maxLevel = rootLevel + 4;
    this.store = new TileStore(trace.source.stored ? Infinity : kTileBudgetBytes, rootLevel);
    const changed = () => {
      this.tilesChanged.value += 1;
      this.requestDraw();
    };
    this.counters = new CounterLoader(trace, lanes, () => this.requestDraw());
    if (this.stored) {
      this.loader = null;
      for (const answer of trace.storedTiles()) this.store.put(answer);
    } else {
      this.loader = new TileLoader(trace, this.store, changed, (error) => (this.error.value = error));
    }
    this.disposers.push(effect(() => this.loadRange(this.range.value)));
    this.disposers.push(
      effect(() => {
        const { shown, selected, detail, range, jumps, gap } = this;
        dependsOn(shown.layout, selected, detail, range, jumps.matches, jumps.text, gap); // everything that the canvas shows
        this.requestDraw();
      }),
    );
  }

  dispose(): void {
    this.loader?.stop();
    this.counters.stop();
    this.jumps.stop();
    for (const request of [this.sliceRequest, this.rangeRequest]) request.cancel();
    for (const dispose of this.disposers) dispose();
  }

  // A one-file report has no search, no sums, and no details of most slices.
  get stored(): boolean {
    return this.trace.source.stored;
  }

  // The level at which the whole trace is about `pixels` wide.
  rootLevel(pixels: number): number {
    return levelFor({ fromNs: 0, toNs: this.lanes.endNs }, pixels);
  }

  wantTiles(lanes: readonly number[], minimap: TileRange): void {
    if (!this.loader) return;
    const level = levelFor(this.view, this.width);
    const { first, last } = visibleTiles(this.view, level, this.lanes.endNs);
    const around = {
      first: Math.max(0, first - 1),
      last: visibleTiles({ fromNs: 0, toNs: (last + 2) * 512 * 2 ** level }, level, this.lanes.endNs).last,
    };
    this.loader.want([minimap, { level, first, last, lanes }, { level, ...around, lanes }]);
  }

  // A panel opened by a click takes width from the lanes, but slices stay where they are. When a link is opened or the window is
  // resized, the times at both edges stay instead.
  resize(width: number, height: number): void {
    if (this.sized && width !== this.width) {
      if (this.keepsScale && !this.showsAll())
        this.view = resizedView(this.view, this.width, width, this.selected.value?.startNs ?? null, this.lanes.endNs);
      this.keepsScale = false;
    }
    this.sized = true;
    this.width = width;
    this.height = height;
    this.viewChanged.value += 1;
    this.requestDraw();
  }

  // Whether there is something for the panel to show.
  get panelOpen(): boolean {
    return Boolean(this.selected.value || this.gap.value || (this.range.value && !this.dragging.value));
  }

  private keepingScale(change: () => void): void {
    const wasOpen = this.panelOpen;
    change();
    if (this.panelOpen !== wasOpen) this.keepsScale = !this.keepsScale;
  }

  private showsAll(): boolean {
    return this.target.fromNs <= 0 && this.target.toNs >= this.lanes.endNs;
  }

  // ---- Moving

  setView(view: View, options: { animate?: boolean } = {}): void {
    const to = clampView(view, this.lanes.endNs);
    this.keepsScale = false; // the requested view must be visible as a whole
    if (options.animate && this.animate) {
      this.animation = { from: this.view, to, start: performance.now() };
      this.requestDraw();
      return;
    }
    this.animation = null;
    this.view = to;
    this.viewChanged.value += 1;
    this.requestDraw();
  }

  // Shows exactly this span, even past the ends of the trace: the one that a timeline beside it shows.
  follow(view: View): void {
    this.animation = null;
    this.view = view;
    this.viewChanged.value += 1;
    this.requestDraw();
  }

  // Advances an animation by one frame; true if there are more.
  stepAnimation(now: number): boolean {
    if (!this.animation) return false;
    const { from, to, start } = this.animation;
    const share = Math.min(1, Math.max(0, (now - start) / kAnimationMs));
    const eased = 1 - (1 - share) ** 3;
    this.view = share >= 1 ? to : interpolateViews(from, to, eased);
    if (share >= 1) this.animation = null;
    this.viewChanged.value += 1;
    return share < 1;
  }

  // The view at the end of an animation, for jumps in quick succession.
  get target(): View {
    return this.animation?.to ?? this.view;
  }

  zoom(factor: number, atNs = (this.view.fromNs + this.view.toNs) / 2): void {
    this.setView(zoomView(this.view, factor, atNs, this.lanes.endNs));
  }

  // By a share of the screen.
  pan(share: number): void {
    this.setView(panView(this.view, share * (this.view.toNs - this.view.fromNs), this.lanes.endNs));
  }

  fit(): void {
    const place = this.range.value ?? null;
    const slice = this.selected.value;
    if (place)
      this.setView(fitView(place.fromNs, place.toNs - place.fromNs, this.lanes.endNs, 0.05), { animate: true });
    else if (slice) {
      this.setView(fitView(slice.startNs, slice.durationNs, this.lanes.endNs), { animate: true });
      this.scrollToRow(slice.lane, slice.row);
    } else if (this.gap.value) {
      this.setView(fitView(this.gap.value.startNs, this.gap.value.durationNs, this.lanes.endNs), { animate: true });
    } else this.setView({ fromNs: 0, toNs: this.lanes.endNs }, { animate: true });
  }

  reveal(place: { startNs: number; durationNs: number; lane?: number; row?: number }): void {
    this.setView(revealView(this.target, place.startNs, place.durationNs, this.lanes.endNs), { animate: true });
    if (place.lane !== undefined) this.scrollToRow(place.lane, place.row ?? 0);
  }

  private scrollTo(y: number): void {
    this.scrollY.value = y;
    this.scrollBox(y);
  }

  private scrollToRow(laneId: number, row: number): void {
    const lane = this.laneOf.get(laneId);
    if (!lane) return;
    this.shown.reveal(lane);
    const at = placeOf(this.shown.layout.value, lane, row);
    if (!at || at.pinned) return;
    const top = this.scrollY.value;
    const room = this.height - kRulerHeight - this.shown.layout.value.pinnedHeight;
    if (at.y < top + 10 || at.y + at.height > top + room - 10) this.scrollTo(Math.max(0, at.y - room / 3));
  }

  // ---- Selecting

  select(slice: FoundSlice | null, options: { reveal?: boolean } = {}): void {
    this.sliceRequest.cancel();
    this.keepingScale(() => {
      this.selected.value = slice;
      this.detail.value = null;
      this.gap.value = null;
    });
    if (!slice) return;
    if (options.reveal) this.reveal(slice);
    void this.loadDetail(slice.ref, options.reveal ? "revealed" : "as is");
  }

  // By ref alone, from a link or a table's row.
  async selectRef(ref: string, show: boolean): Promise<void> {
    this.detail.value = null;
    await this.loadDetail(ref, show ? "reveal" : "as is");
  }

  private loadDetail(ref: string, how: "reveal" | "revealed" | "as is"): Promise<void> {
    return this.sliceRequest.ask(
      (signal) => this.trace.slice(ref, signal),
      (detail) => {
        this.detail.value = detail;
        this.selected.value = detail;
        this.error.value = null;
        if (how === "reveal") this.reveal(detail);
        const lane = this.laneOf.get(detail.lane);
        const where = lane ? `${lane.group}, ${lane.name}` : "";
        this.announce.value = `${detail.name}, ${kindText(detail.kind)}, ${formatDuration(detail.durationNs)}, at ${formatDuration(detail.startNs)}, ${where}`;
      },
    );
  }

  setRange(range: Range | null): void {
    this.range.value = range && {
      fromNs: Math.max(0, Math.min(range.fromNs, range.toNs)),
      toNs: Math.min(this.lanes.endNs, Math.max(range.fromNs, range.toNs)),
    };
  }

  markSelection(): void {
    const slice = this.selected.value;
    const gap = this.gap.value;
    const place = slice ?? gap;
    if (place) this.setRange({ fromNs: place.startNs, toNs: place.startNs + place.durationNs });
  }

  private loadRange(range: Range | null): void {
    this.rangeRequest.cancel();
    untracked(() => (this.rangeReport.value = null));
    if (!range || range.toNs <= range.fromNs || this.stored) return;
    void this.rangeRequest.ask(
      (signal) => this.trace.range(range.fromNs, range.toNs, undefined, signal),
      (report) => {
        this.rangeReport.value = report;
        this.announce.value = `Range of ${formatDuration(range.toNs - range.fromNs)}`;
      },
      kSettleMs,
    );
  }

  // What Esc does: clears the range first, then the selection, then the search.
  clear(): void {
    if (this.range.value) this.keepingScale(() => (this.range.value = null));
    else if (this.selected.value || this.gap.value) this.select(null);
    else if (this.jumps.text.value) this.jumps.setText("");
  }

  async open(place: TimelinePlace): Promise<void> {
    if (place.ref) return this.selectRef(place.ref, true);
    if (place.startNs !== undefined) {
      const durationNs = place.durationNs ?? 0;
      this.select(null);
      if (durationNs > 0) this.setRange({ fromNs: place.startNs, toNs: place.startNs + durationNs });
      this.setView(fitView(place.startNs, durationNs, this.lanes.endNs, 0.25));
      if (place.lane !== undefined) this.scrollToRow(place.lane, 0);
      return;
    }
    if (place.step !== undefined && place.name === undefined) return this.jumps.showStep(place.step);
    if (place.name !== undefined) {
      this.jumps.setText(place.name);
      return this.jumps.find(place.name, 0, { exact: true, lane: place.lane });
    }
  }

  fail(error: unknown): void {
    this.error.value = error instanceof Error ? error.message : String(error);
  }

  // ---- Links

  toUrl(): TimelineUrl {
    const { fromNs, toNs } = this.target;
    const whole = clampView({ fromNs: 0, toNs: this.lanes.endNs }, this.lanes.endNs);
    const isWhole = fromNs === whole.fromNs && toNs === whole.toNs;
    return {
      view: isWhole ? kWholeTrace : { fromNs, toNs },
      scroll: this.scrollY.value,
      selected: this.selected.value?.ref ?? "",
      range: this.range.value,
      search: this.jumps.text.value,
      ...this.shown.toUrl(),
    };
  }

  fromUrl(url: TimelineUrl): void {
    this.shown.fromUrl(url);
    this.setRange(url.range);
    this.jumps.setText(url.search);
    if (url.selected === "") this.select(null);
    else if (url.selected !== this.selected.value?.ref) void this.selectRef(url.selected, false);
    this.setView(url.view ?? { fromNs: 0, toNs: this.lanes.endNs });
    this.scrollTo(url.scroll);
  }
}
