// Collects what a rule found: device work, its time, and the question to the graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "advise/context.h"
#include "advise/finding.h"
#include "advise/host_evidence.h"
#include "analyze/common/intervals.h"
#include "analyze/graph/whatif.h"
#include "model/model.h"

namespace firelane::advise {

class Evidence {
 public:
  explicit Evidence(const Context& context) : case_(context) {}

  // A piece of device work that would take `keep_low` (at worst) to `keep_high` (at best) of its time.
  // Work outside the analyzed steps is left out.
  void add_device(Row row, double keep_low, double keep_high) {
    const DeviceSlices& device = case_.model.device_slices;
    if (!case_.holds(row)) return;
    rows_.push_back({row, true});
    on_device_.push_back({device.start_ns[row], device.end_ns(row)});
    low_.device.push_back({row, keep_low});
    high_.device.push_back({row, keep_high});
  }
  // A piece of device work that would take `keep_low` to `keep_high` of its time, and is no part of what is counted.
  void add_beside(Row row, double keep_low, double keep_high) {
    if (!case_.holds(row)) return;
    if (keep_low < 1) low_.device.push_back({row, keep_low});
    high_.device.push_back({row, keep_high});
  }
  // A host slice of which `keep_low` stays at worst, and `keep_high` at best. It is no part of what is counted.
  void add_host(Row row, double keep_low = 1, double keep_high = 0) {
    const HostSlices& host = case_.model.host_slices;
    if (!case_.in_window(host.start_ns[row])) return;
    const analyze::HostCut cut{.lane = host.lane[row], .start_ns = host.start_ns[row], .end_ns = host.end_ns(row)};
    if (keep_low < 1) {
      low_.host.push_back(cut);
      low_.host.back().keep = keep_low;
    }
    high_.host.push_back(cut);
    high_.host.back().keep = keep_high;
  }
  // A call, or an operator on the CPU, that takes time itself: `keep_low` (at worst) to `keep_high` (at best) of it
  // stays.
  void add_call(Row row, double keep_low = 0.5, double keep_high = 0) {
    const HostSlices& host = case_.model.host_slices;
    if (!case_.in_window(host.start_ns[row])) return;
    rows_.push_back({row, false});
    on_host_ns_ += case_.took_ns(row);
    const analyze::HostCut cut{.lane = host.lane[row], .start_ns = host.start_ns[row], .end_ns = host.end_ns(row)};
    low_.host.push_back(cut);
    low_.host.back().keep = keep_low;
    high_.host.push_back(cut);
    high_.host.back().keep = keep_high;
  }
  // A call that would no longer be made: what it waited for, the device goes on with beside the host.
  void add_wait(Row row) {
    if (!case_.in_window(case_.model.host_slices.start_ns[row])) return;
    low_.waits.push_back(row);
    high_.waits.push_back(row);
  }
  // An operator that would not be called: the way to it, in Python, goes with it.
  void add_way_to(Row row) {
    const HostSlices& host = case_.model.host_slices;
    if (!case_.in_window(host.start_ns[row])) return;
    add_stretch(host.lane[row], way_start_ns(case_.model, row), host.start_ns[row]);
  }
  // A stretch of a thread's time that would go, and is no part of what is counted.
  void add_stretch(LaneId lane, int64_t start_ns, int64_t end_ns) {
    if (end_ns <= start_ns) return;
    low_.host.push_back({.lane = lane, .start_ns = start_ns, .end_ns = end_ns});
    high_.host.push_back(low_.host.back());
  }

  bool empty() const { return rows_.empty(); }
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }

  // Cost, share, gain and events of the finding. Work of two streams at the same moment costs that moment once.
  void fill(Finding& finding);

 private:
  int64_t most_saved_ns(const analyze::WhatIf& change) const;
  int64_t duration_ns(const SliceRef& slice) const {
    return slice.on_device ? case_.model.device_slices.duration_ns[slice.row]
                           : case_.model.host_slices.duration_ns[slice.row];
  }

  const Context& case_;
  std::vector<SliceRef> rows_;
  std::vector<analyze::Interval> on_device_;
  int64_t on_host_ns_ = 0;
  analyze::WhatIf low_, high_;
};

}  // namespace firelane::advise
