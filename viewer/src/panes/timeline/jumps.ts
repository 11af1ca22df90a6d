// Searching, and going to other places of the trace: hits of a text, namesakes, relatives, gaps, steps.

import { signal } from "@preact/signals";
import type { SearchAnswer, StepMark } from "../../data/answers";
import { formatDuration } from "../../text/format";
import { kSettleMs, Latest } from "./latest";
import type { TimelineModel } from "./model";
import { fitView, type View } from "./view";

const kSearchBins = 512;

export class Jumps {
  readonly text = signal(""); // what is searched for
  readonly hits = signal<SearchAnswer | null>(null);
  private readonly searchAsked: Latest;
  private readonly asked: Latest;

  constructor(private readonly model: TimelineModel) {
    this.searchAsked = new Latest((error) => model.fail(error));
    this.asked = new Latest((error) => model.fail(error));
  }

  stop(): void {
    this.searchAsked.cancel();
    this.asked.cancel();
  }

  setText(text: string): void {
    if (text === this.text.value) return;
    this.text.value = text;
    this.searchAsked.cancel();
    if (text === "" || this.model.stored) {
      this.hits.value = null;
      return;
    }
    void this.searchAsked.ask(
      (signal) => this.model.trace.search(text, { bins: kSearchBins }, signal),
      (answer) => {
        this.hits.value = answer;
        this.model.announce.value = `${answer.slices} hits`;
      },
      kSettleMs,
    );
  }

  // Next (1), previous (-1) or longest (0) hit of a text; from the selection, else from the edge of the screen.
  async find(text: string, direction: 1 | -1 | 0, options: { exact?: boolean; lane?: number } = {}): Promise<void> {
    if (text === "" || this.model.stored) return;
    const slice = this.model.selected.value;
    const { fromNs, toNs } = this.model.target;
    const inView = slice && slice.startNs + slice.durationNs >= fromNs && slice.startNs <= toNs;
    const start = inView ? slice.startNs : direction < 0 ? toNs : fromNs;
    // Round the end, as every search does.
    const otherEnd = direction > 0 ? -1 : this.model.lanes.endNs + 1;
    const ask = (from: number, signal: AbortSignal) =>
      this.model.trace.find(text, { ...options, fromNs: from, direction }, signal);
    await this.asked.ask(
      async (signal) => (await ask(start, signal)) ?? (direction === 0 ? null : await ask(otherEnd, signal)),
      (found) => {
        if (found) this.model.select(found, { reveal: true });
        else this.model.announce.value = `Nothing is called ${text}`;
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
    await this.asked.ask(
      (signal) => this.model.trace.gap(start, direction, undefined, signal),
      (gap) => {
        if (!gap) {
          this.model.announce.value = "No further gap on a device";
          return;
        }
        this.model.select(null);
        this.model.gap.value = gap;
        this.model.reveal(gap);
        this.model.announce.value = `Gap of ${formatDuration(gap.durationNs)}: ${gap.cause}`;
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

// The step in the middle of the view, where it fills at least half of that: what one looks at.
export function stepIn(view: View, steps: readonly StepMark[]): StepMark | null {
  const middle = (view.fromNs + view.toNs) / 2;
  const found = steps.find((step) => middle >= step.startNs && middle < step.startNs + step.durationNs);
  return found && found.durationNs >= (view.toNs - view.fromNs) / 2 ? found : null;
}

// The one after or before it; where one looks at no step, the first or last that begins in the view.
export function stepBeside(view: View, steps: readonly StepMark[], direction: 1 | -1): StepMark | null {
  const current = stepIn(view, steps);
  if (current) return steps[steps.indexOf(current) + direction] ?? null;
  const inView = steps.filter((step) => step.startNs >= view.fromNs && step.startNs < view.toNs);
  return (direction > 0 ? inView[0] : inView[inView.length - 1]) ?? null;
}
