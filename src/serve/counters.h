// The curves under the lanes: the trace's own counters, and those that follow from its events (memory, work in the
// queue, device utilization).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::serve {

struct CounterTrack {
  std::string group;  // as the lanes': "GPU 0", "python3 688"
  std::string name;
  std::string unit;
  double min = 0;
  double max = 0;
  // Either samples, each valid until the next, sorted by time ...
  std::vector<int64_t> times_ns;
  std::vector<double> values;
  // ... or moments that are on, shown as percent of a bin.
  std::optional<analyze::IntervalSet> on;
};

std::vector<CounterTrack> find_counters(const Model& model);

struct CounterBin {
  double min = 0;
  double max = 0;
  double last = 0;
};
// One per bin from from_ns on; nothing before the first sample.
std::vector<std::optional<CounterBin>> counter_bins(const CounterTrack& track, int64_t from_ns, int64_t bin_ns,
                                                    size_t bins);

}  // namespace firelane::serve
