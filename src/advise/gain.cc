#include "advise/gain.h"

#include <algorithm>
#include <cmath>

#include "advise/proofs.h"

namespace firelane::advise {

namespace {

// Of a step, from one run to the next, nine times of ten: blocks of steps of the same program, timed without a recorder
// (bench/diagnose/library.md). Hosts vary, devices hardly.
constexpr double kHostNoise = 0.06;
constexpr double kDeviceNoise = 0.01;

// Of the critical path, the host's part: there recording and its undoing decide.
double host_part(const analyze::Study& study) {
  if (!study.has_device_work) return 1;
  return std::clamp(study.bound.shares[static_cast<size_t>(analyze::Limit::kOverhead)], 0.0, 1.0);
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
  const auto most = static_cast<double>(std::max<int64_t>(0, std::min(context.step_ns, found.most_ns)));
  const double replayed = std::clamp(static_cast<double>(found.gain.middle_ns()), 0.0, most);
  const auto noise = static_cast<double>(step_noise_ns(context));
  if (replayed <= noise) return {};
  const double likely =
      std::min(most, found.saves_all ? replayed : likely_ns(replayed, static_cast<double>(context.step_ns)));
  const Errors errors = errors_of(found.id);
  const auto apart = [&](double error) {
    return std::sqrt(error * likely * error * likely + noise * noise);  // std::hypot would need glibc 2.35
  };
  return {.low_ns = std::llround(std::max(0.0, likely - apart(errors.below))),
          .high_ns = std::llround(std::min(most, likely + apart(errors.above))),
          .likely_ns = std::llround(likely)};
}

}  // namespace firelane::advise
