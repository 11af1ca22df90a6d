// Fetches the bins of visible counters: a little more than the view needs, and again when the view leaves them or zooms in further.

import type { CounterBins, Lanes } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import type { View } from "./view";

const kSettleMs = 80;

export class CounterLoader {
  private current: CounterBins | null = null;
  private tracks = "";
  private control = new AbortController();
  private wanted = "";

  constructor(
    private readonly trace: TraceClient,
    private readonly lanes: Lanes,
    private readonly changed: () => void,
  ) {}

  get(
    track: number,
  ): { fromNs: number; binNs: number; min: (number | null)[]; max: (number | null)[]; last: (number | null)[] } | null {
    const own = this.current?.tracks.find((t) => t.id === track);
    return own && this.current ? { fromNs: this.current.fromNs, binNs: this.current.binNs, ...own } : null;
  }

  want(view: View, width: number, tracks: readonly number[]): void {
    if (tracks.length === 0 || width < 1) return;
    const { endNs } = this.lanes;
    const span = view.toNs - view.fromNs;
    if (this.isEnough(view, span / width, tracks)) return;
    const fromNs = Math.max(0, Math.floor(view.fromNs - span / 2));
    const toNs = Math.min(endNs, Math.ceil(view.toNs + span / 2));
    const bins = Math.max(1, Math.min(4096, Math.ceil(((toNs - fromNs) / span) * (width / 2))));
    const key = `${fromNs}:${toNs}:${bins}:${tracks.join(",")}`;
    if (toNs <= fromNs || key === this.wanted) return;
    this.wanted = key;
    this.control.abort();
    const control = (this.control = new AbortController());
    window.setTimeout(() => {
      if (control.signal.aborted) return;
      this.trace.counters(fromNs, toNs, bins, tracks, control.signal).then(
        (answer) => {
          if (control.signal.aborted) return;
          this.current = answer;
          this.tracks = tracks.join(",");
          this.changed();
        },
        () => {
          // Tiles report the same error; a later view tries again.
          if (!control.signal.aborted) this.wanted = "";
        },
      );
    }, kSettleMs);
  }

  stop(): void {
    this.control.abort();
  }

  private isEnough(view: View, nsPerPixel: number, tracks: readonly number[]): boolean {
    const have = this.current;
    if (!have) return false;
    if (this.trace.source.stored) return true;
    const bins = have.tracks[0]?.max.length ?? 0;
    const covers =
      have.fromNs <= Math.max(0, view.fromNs) &&
      have.fromNs + bins * have.binNs >= Math.min(this.lanes.endNs, view.toNs) - have.binNs;
    const fine = have.binNs <= 4.5 * nsPerPixel && have.binNs >= 0.4 * nsPerPixel;
    return covers && fine && this.tracks === tracks.join(",");
  }
}
