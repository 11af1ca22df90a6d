// What happened in a stretch of time: per lane, per kind and per name, each slice clipped to the stretch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

struct RangeLane {
  LaneId lane{};
  int64_t slices = 0;
  int64_t busy_ns = 0;  // some slice was open; on streams: device work
};

struct RangeKind {
  bool on_device = false;
  HostKind host_kind = HostKind::kOther;
  DeviceKind device_kind = DeviceKind::kOther;
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t self_ns = 0;
};

struct RangeName {
  StringId name = kNoString;
  bool on_device = false;
  HostKind host_kind = HostKind::kOther;
  DeviceKind device_kind = DeviceKind::kOther;
  int64_t count = 0;  // slices that touch the range
  int64_t total_ns = 0;
  int64_t self_ns = 0;  // without what is nested in it; adds up to the lanes' busy time where slices nest
};

struct RangeSums {
  Interval range;
  std::vector<RangeLane> lanes;  // with at least one slice, in the model's order
  std::vector<RangeKind> kinds;  // longest total first
  std::vector<RangeName> names;  // longest total first
};

// `lanes`: only these; nothing = all.
RangeSums range_sums(const Model& model, const Interval& range, const std::optional<std::vector<LaneId>>& lanes = {});

}  // namespace firelane::analyze
