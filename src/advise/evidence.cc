#include "advise/evidence.h"

#include <cmath>

#include "advise/gain.h"

namespace firelane::advise {

int64_t Context::took_ns(int64_t start_ns, int64_t end_ns) const {
  return study == nullptr ? end_ns - start_ns : study->host->took_ns(start_ns, end_ns);
}

// No change saves more than it takes out; per step. INT64_MAX: waits are taken out, and nothing is known.
int64_t Evidence::most_saved_ns(const analyze::WhatIf& change) const {
  if (!change.waits.empty()) return INT64_MAX;
  double taken_ns = 0;
  for (const analyze::DeviceCut& cut : change.device) {
    taken_ns += (1 - cut.keep) * static_cast<double>(case_.model.device_slices.duration_ns[cut.row]);
  }
  for (const analyze::HostCut& cut : change.host) {
    taken_ns += (1 - cut.keep) * static_cast<double>(case_.took_ns(cut.start_ns, cut.end_ns));
  }
  return static_cast<int64_t>(taken_ns / static_cast<double>(std::max<int64_t>(1, case_.step_count)));
}

void Evidence::fill(Finding& finding) {
  finding.cost_ns =
      (on_host_ns_ + analyze::IntervalSet(on_device_).total_ns()) / std::max<int64_t>(case_.step_count, 1);
  finding.share_of_step = case_.share_of_step(finding.cost_ns);
  finding.events = count();
  // A gain that noise hides is none (gain_range): where the change is too small for any other, nothing is replayed. The
  // factor is for a replay of repeated windows, which may move their ends.
  constexpr int64_t kOfRepeats = 2;
  const bool is_hidden = case_.study != nullptr && most_saved_ns(high_) <= step_noise_ns(case_) / kOfRepeats &&
                         most_saved_ns(low_) <= step_noise_ns(case_) / kOfRepeats;
  if (!is_hidden) {
    finding.gain.low_ns = std::max<int64_t>(0, case_.gain_ns(low_));
    finding.gain.high_ns = std::max(finding.gain.low_ns, case_.gain_ns(high_));
  }
  finding.behind = rows_;
  std::stable_sort(rows_.begin(), rows_.end(),
                   [&](const SliceRef& a, const SliceRef& b) { return duration_ns(a) > duration_ns(b); });
  constexpr size_t kMostSlices = 10;
  finding.slices.assign(rows_.begin(), rows_.begin() + static_cast<ptrdiff_t>(std::min(rows_.size(), kMostSlices)));
}

}  // namespace firelane::advise
