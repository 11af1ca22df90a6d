#include "advise/gain.h"

#include <algorithm>
#include <cmath>

#include "advise/proofs.h"
#include "analyze/steps/step_spans.h"

namespace firelane::advise {

namespace {

// Variation of a step from one run to the next, nine times of ten: blocks of steps of the same program, timed without a
// recorder (bench/diagnose/library.md). Hosts vary, devices hardly.
constexpr double kHostNoise = 0.06;
constexpr double kDeviceNoise = 0.01;

// The host's share of the critical path: it depends on recording and its correction.
double host_part(const analyze::Study& study) {
  if (!study.has_device_work) return 1;
  return std::clamp(study.bound.shares[static_cast<size_t>(analyze::Limit::kOverhead)], 0.0, 1.0);
}

// The average step: one as it was timed without recording, and what slower ones add that were recorded, as far as
// these were not slower altogether.
int64_t true_step_ns(const analyze::Study& study) {
  const int64_t played_ns = study.undone.step_ns;
  const int64_t usual_ns = analyze::usual_length(study.step_spans);
  if (study.undone.source != analyze::CostSource::kBaseline || usual_ns <= 0) return played_ns;
  const double part = std::min(1.0, static_cast<double>(study.undone.usual_ns) / static_cast<double>(usual_ns));
  const int64_t slower_ns = std::llround(part * static_cast<double>(std::max<int64_t>(0, played_ns - usual_ns)));
  return std::min(played_ns, study.undone.usual_ns + slower_ns);
}

int64_t replayed_step_ns(const analyze::Study& study, const analyze::WhatIf& change, double factor) {
  return study.per_step(analyze::replay_total_ns(study.graph, change, study.undone.at(factor)));
}

// Of the recorder's measured costs, as often as it takes for a step of the length that was timed.
double factor_of_calls(const analyze::Study& study) {
  constexpr double kNear = 0.1;  // less is what steps differ by
  constexpr double kMost = 64;
  constexpr int kRounds = 10;
  const int64_t goal_ns = true_step_ns(study);
  double low = study.undone.factor;
  if (static_cast<double>(study.undone.step_ns) <= (1 + kNear) * static_cast<double>(goal_ns)) return low;
  double high = kMost;
  for (int i = 0; i < kRounds; ++i) {
    const double middle = (low + high) / 2;
    (replayed_step_ns(study, {}, middle) > goal_ns ? low : high) = middle;
  }
  return high;
}

}  // namespace

int64_t saved_ns(const analyze::Study& study, const analyze::WhatIf& change) {
  const analyze::PreparedChange prepared(study.graph, change);
  if (prepared.is_none()) return 0;
  const int64_t by_event = study.gain_ns(prepared);
  const int64_t recorded_ns = study.recorded.total_ns();
  const double host = host_part(study);
  if (recorded_ns <= 0 || host <= 0 || study.undone.factor == 0) return by_event;
  const int64_t changed_ns = analyze::replay_total_ns(study.graph, prepared, {.recording_removed = 0}, &study.recorded);
  const double evenly = static_cast<double>(study.per_step(recorded_ns - changed_ns)) *
                        static_cast<double>(study.played.total_ns()) / static_cast<double>(recorded_ns);
  return by_event + std::llround(host * std::max(0.0, evenly - static_cast<double>(by_event)));
}

TrueCalls true_calls(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  const double factor = factor_of_calls(study);
  return {.factor = factor,
          .step_ns = factor <= study.undone.factor ? study.undone.step_ns : replayed_step_ns(study, {}, factor)};
}

Context with_true_calls(const Context& context) {
  Context out = context;
  const analyze::Study* study = context.study;
  if (study == nullptr || context.has_device_work || study->undone.within_noise) return out;
  const TrueCalls calls = context.trace.get<true_calls>();
  if (calls.factor <= study->undone.factor) return out;
  out.step_ns = calls.step_ns;
  out.gain_ns = [study, calls](const analyze::WhatIf& change) {
    const auto saved = static_cast<double>(saved_ns(*study, change));
    const auto by_event = static_cast<double>(calls.step_ns - replayed_step_ns(*study, change, calls.factor));
    const double evenly = saved * static_cast<double>(calls.step_ns) / static_cast<double>(study->undone.step_ns);
    return std::llround(std::min(saved, (by_event + evenly) / 2));
  };
  return out;
}

int64_t most_of_step_ns(const analyze::Study& study) { return true_step_ns(study) + study.slow_steps.excess_ns; }

int64_t step_noise_ns(const Context& context) {
  const double host = context.study == nullptr ? 0 : host_part(*context.study);
  return std::llround((kHostNoise * host + kDeviceNoise * (1 - host)) * static_cast<double>(context.step_ns));
}

void set_gain_of_all(const Context& context, const Gain& gain, Finding& finding) {
  finding.gain = gain;
  // Seldom a little more goes with it: what was made meanwhile has to be given back as well.
  constexpr double kWithIt = 0.1;
  finding.most_ns =
      std::llround((1 + kWithIt) * static_cast<double>(std::max<int64_t>(0, gain.high_ns))) + step_noise_ns(context);
  finding.saves_all = true;
}

double likely_ns(double replayed_ns, double step_ns) {
  const double rest = 1 - std::min(1.0, replayed_ns / std::max(1.0, step_ns));
  return (1 + kTakenAlong * rest) * replayed_ns;
}

Gain gain_range(const Context& context, const Finding& found) {
  const int64_t step_ns = found.of_step_ns == kNoNumber ? context.step_ns : found.of_step_ns;
  const auto most = static_cast<double>(std::max<int64_t>(0, std::min(step_ns, found.most_ns)));
  const double replayed = std::clamp(static_cast<double>(found.gain.middle_ns()), 0.0, most);
  const double noise = static_cast<double>(step_noise_ns(context)) * static_cast<double>(step_ns) /
                       static_cast<double>(std::max<int64_t>(1, context.step_ns));
  if (replayed <= noise) return {};
  const double likely = std::min(most, found.saves_all ? replayed : likely_ns(replayed, static_cast<double>(step_ns)));
  const Errors errors = errors_of(found.id);
  const auto apart = [&](double error) {
    return std::sqrt(error * likely * error * likely + noise * noise);  // std::hypot would need glibc 2.35
  };
  return {.low_ns = std::llround(std::max(0.0, likely - apart(errors.below))),
          .high_ns = std::llround(std::min(most, likely + apart(errors.above))),
          .likely_ns = std::llround(likely)};
}

}  // namespace firelane::advise
