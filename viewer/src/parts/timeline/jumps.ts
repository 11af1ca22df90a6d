// Search, and jumps to matches, slices with the same name, parents and children, gaps and steps.

import { signal } from "@preact/signals";
import type { SearchAnswer, StepMark } from "../../data/answers";
import { formatDuration, formatNumber } from "../../text/format";
import { kSettleMs, Latest } from "./latest";
import type { TimelineModel } from "./model";
import { fitView, type View } from "./view";

const kSearchBins = 512;

export class Jumps {
  readonly text = signal(""); // the search text
  readonly matches = signal<SearchAnswer | null>(null);
  private readonly searchRequest: Latest;
  private readonly jumpRequest: Latest;

  constructor(private readonly model: TimelineModel) {
    this.searchRequest = new Latest((error) => model.fail(error));
    this.jumpRequest = new Latest((error) => model.fail(error));
  }

  stop(): void {
    this.searchRequest.cancel();
    this.jumpRequest.cancel();
  }

  setText(text: string): void {
    if (text === this.text.value) return;
    this.text.value = text;
    this.searchRequest.cancel();
    if (text === "" || this.model.stored) {
      this.matches.value = null;
      return;
    }
    void this.searchRequest.ask(
      (signal) => this.model.trace.search(text, { bins: kSearchBins }, signal),
      (answer) => {
        this.matches.value = answer;
        this.model.announce.value = matchCount(answer.slices);
      },
      kSettleMs,
    );
  }

  // The next (1), previous (-1) or longest (0) match, counted from the selection or else from the edge of the screen.
  async find(text: string, direction: 1 | -1 | 0, options: { exact?: boolean; lane?: number } = {}): Promise<void> {
    if (text === "" || this.model.stored) return;
    const slice = this.model.selected.value;
    const { fromNs, toNs } = this.model.target;
    const inView = slice && slice.startNs + slice.durationNs >= fromNs && slice.startNs <= toNs;
    const start = inView ? slice.startNs : direction < 0 ? toNs : fromNs;
    // Wraps around at the end of the trace.
    const otherEnd = direction > 0 ? -1 : this.model.lanes.endNs + 1;
    const ask = (from: number, signal: AbortSignal) =>
      this.model.trace.find(text, { ...options, fromNs: from, direction }, signal);
    await this.jumpRequest.ask(
      async (signal) => (await ask(start, signal)) ?? (direction === 0 ? null : await ask(otherEnd, signal)),
      (found) => {
        if (found) this.model.select(found, { reveal: true });
        else this.model.announce.value = `No slice matches ${text}`;
      },
    );
  }

  sameName(direction: 1 | -1): void {
    const detail = this.model.detail.value;
    const to = direction > 0 ? detail?.sameName.next : detail?.sameName.previous;
    if (to) this.model.select(to, { reveal: true });
    else if (!detail && this.text.value) void this.find(this.text.value, direction);
  }

  longest(): void {
    const name = this.model.detail.value?.name;
    if (name) void this.find(name, 0, { exact: true });
  }

  parent(): void {
    const to = this.model.detail.value?.parent;
    if (to) this.model.select(to, { reveal: true });
  }

  firstChild(): void {
    const to = this.model.detail.value?.children[0];
    if (to) this.model.select(to, { reveal: true });
  }

  async nextGap(direction: 1 | -1): Promise<void> {
    if (this.model.stored) return;
    const { fromNs, toNs } = this.model.target;
    const start = this.model.gap.value?.startNs ?? (direction > 0 ? fromNs : toNs);
    await this.jumpRequest.ask(
      (signal) => this.model.trace.gap(start, direction, undefined, signal),
      (gap) => {
        if (!gap) {
          this.model.announce.value = "No further idle gap";
          return;
        }
        this.model.select(null);
        this.model.gap.value = gap;
        this.model.reveal(gap);
        this.model.announce.value = `Idle gap of ${formatDuration(gap.durationNs)}: ${gap.causeText}`;
      },
    );
  }

  showStep(number: number): void {
    const step = this.model.lanes.steps.find((mark) => mark.number === number);
    if (step) this.model.setView(fitView(step.startNs, step.durationNs, this.model.lanes.endNs, 0.02), { animate: true });
  }

  currentStep(): number | null {
    return stepIn(this.model.target, this.model.lanes.steps)?.number ?? null;
  }

  nextStep(direction: 1 | -1): void {
    const to = stepBeside(this.model.target, this.model.lanes.steps, direction);
    if (to) this.showStep(to.number);
  }
}

export function matchCount(count: number): string {
  return `${formatNumber(count)} ${count === 1 ? "match" : "matches"}`;
}

// The step being looked at: the one in the middle of the view, if it fills at least half of it.
export function stepIn(view: View, steps: readonly StepMark[]): StepMark | null {
  const middle = (view.fromNs + view.toNs) / 2;
  const found = steps.find((step) => middle >= step.startNs && middle < step.startNs + step.durationNs);
  return found && found.durationNs >= (view.toNs - view.fromNs) / 2 ? found : null;
}

// The step after or before that one; without one, the first or last step that starts in the view.
export function stepBeside(view: View, steps: readonly StepMark[], direction: 1 | -1): StepMark | null {
  const current = stepIn(view, steps);
  if (current) return steps[steps.indexOf(current) + direction] ?? null;
  const inView = steps.filter((step) => step.startNs >= view.fromNs && step.startNs < view.toNs);
  return (direction > 0 ? inView[0] : inView[inView.length - 1]) ?? null;
}
