// Which time of one trace stands below which time of the other. Pure.

import type { StepMark } from "../../data/answers";
import { stepIn } from "../../parts/timeline/jumps";
import type { View } from "../../parts/timeline/view";

export interface Aligned {
  steps: readonly StepMark[];
  at: number; // which of them stands below which of the other side's; -1 where there are none
}

// The step of median length stands for the usual one; the first ones may be warm-up.
export function usualStep(steps: readonly StepMark[]): number {
  const order = steps.map((_, at) => at).sort((a, b) => steps[a].durationNs - steps[b].durationNs);
  return order.length > 0 ? order[Math.floor((order.length - 1) / 2)] : -1;
}

// The same number on both sides where there is one, so that the two timelines begin with the same batch; else the usual steps.
export function firstPair(before: readonly StepMark[], after: readonly StepMark[]): [number, number] {
  const at = usualStep(before);
  const same = after.findIndex((step) => step.number === before[at]?.number);
  const isWarmUp = same >= 0 && same < Math.min(2, after.length - 1);
  return [at, same >= 0 && !isWarmUp ? same : usualStep(after)];
}

function startOf(side: Aligned, at: number): number {
  return side.steps[at]?.startNs ?? 0;
}

// The view of the follower: as long as the leader's, with the step that the leader looks at below its own.
export function followedView(view: View, leader: Aligned, follower: Aligned): View {
  const looked = stepIn(view, leader.steps);
  const ahead = looked ? leader.steps.indexOf(looked) - leader.at : 0;
  const has = follower.steps[follower.at + ahead] !== undefined;
  const [from, to] = has ? [leader.at + ahead, follower.at + ahead] : [leader.at, follower.at];
  const shift = startOf(follower, to) - startOf(leader, from);
  return { fromNs: view.fromNs + shift, toNs: view.toNs + shift };
}

// Both steps as a whole, from their starts.
export function pairView(leader: Aligned, follower: Aligned, endNs: number): View {
  const lengths = [leader, follower].map((side) => side.steps[side.at]?.durationNs ?? 0);
  const span = Math.max(...lengths) || endNs;
  const start = startOf(leader, leader.at);
  return { fromNs: start - 0.02 * span, toNs: start + 1.02 * span };
}
