// What a change would save: the replayed graph's answer, and how far the truth may be from it.
//
// A rule says what it would change; saved_ns() replays the graph with that. gain_range() then turns the middle of the
// rule's extremes into the range that is printed: the model's own error, as measured on programs whose gain is known
// (proofs.cc), and the noise of the steps themselves. See docs/analyses.md, "Gains".
#pragma once

#include <cstdint>

#include "advise/context.h"
#include "advise/finding.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

// Per step, recording undone.
//
// What recording cost is not known event by event. Taking each event's estimate out leaves too little of stretches with
// many events, letting all of the host's time shrink by the same factor too little of those with few: as far as the
// host is the limit, the larger of the two replays counts.
int64_t saved_ns(const analyze::Study& study, const analyze::WhatIf& change);

// The noise of a step: how much of it may come or go by itself, ns.
int64_t step_noise_ns(const Context& context);

// What the recorder's measured costs are to be multiplied with for steps of the length that was timed, and how long
// they are then. Known once for all rules.
struct TrueCalls {
  double factor = 1;
  int64_t step_ns = 0;
};
TrueCalls true_calls(const StudiedTrace& trace);

// A context for findings that take calls of operators out, without a device. Where steps that were timed without
// recording are shorter than the replay without the recorder's measured cost, a call cost the recorder more than it
// measured (steps recorded right after others were not): gains are those of a replay in which calls cost so much less
// that a step takes what was timed. Else the same as `context`.
Context with_true_calls(const Context& context);

// The longest that a step may be: nothing saves more than this.
int64_t most_of_step_ns(const analyze::Study& study);

// What a finding saves whose cost could go altogether: nearly all of it, and no more but for noise.
void set_gain_of_all(const Context& context, const Gain& gain, Finding& finding);

// What is likely to be saved where a replay saves `replayed_ns` of a step of `step_ns`: what is taken along comes out
// of the rest of the step, so that the less there is of it, the less goes with the change.
double likely_ns(double replayed_ns, double step_ns);

// What is printed of a gain whose middle the rule gives: what is likely, and a range. Empty (0 to 0) where the noise
// hides it.
Gain gain_range(const Context& context, const Finding& found);

}  // namespace firelane::advise
