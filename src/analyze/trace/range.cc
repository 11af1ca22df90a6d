#include "analyze/trace/range.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analyze/common/self_time.h"

namespace firelane::analyze {

namespace {

class RangeSummer {
 public:
  RangeSummer(const Model& model, const Interval& range) : model_(model) { sums_.range = range; }

  void add_lane(LaneId lane) {
    const auto l = static_cast<size_t>(lane);
    RangeLane row{.lane = lane};
    std::vector<Interval> work;
    add_host(lane, row, work);
    add_device(l, row, work);
    row.busy_ns = IntervalSet(std::move(work)).total_ns();
    if (row.slices > 0) sums_.lanes.push_back(row);
  }

  RangeSums take() {
    for (auto& [key, name] : names_) {
      RangeKind& kind = kinds_[key & 0xFF];
      kind.on_device = name.on_device;
      kind.host_kind = name.host_kind;
      kind.device_kind = name.device_kind;
      kind.count += name.count;
      kind.total_ns += name.total_ns;
      kind.self_ns += name.self_ns;
      sums_.names.push_back(name);
    }
    for (const RangeKind& kind : kinds_) {
      if (kind.count > 0) sums_.kinds.push_back(kind);
    }
    std::sort(sums_.names.begin(), sums_.names.end(), [](const RangeName& a, const RangeName& b) {
      if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
      return a.name != b.name ? a.name < b.name : a.on_device < b.on_device;
    });
    std::stable_sort(sums_.kinds.begin(), sums_.kinds.end(),
                     [](const RangeKind& a, const RangeKind& b) { return a.total_ns > b.total_ns; });
    return std::move(sums_);
  }

 private:
  bool clip(int64_t start_ns, int64_t end_ns, Interval& out) const {
    out = {std::max(start_ns, sums_.range.start_ns), std::min(end_ns, sums_.range.end_ns)};
    // A slice without length is there when it lies inside.
    return out.start_ns < out.end_ns ||
           (start_ns == end_ns && start_ns >= sums_.range.start_ns && start_ns < sums_.range.end_ns);
  }

  RangeName& name_of_slice(StringId name, bool on_device, uint8_t kind) {
    const uint64_t place = (on_device ? kHostKindCount : 0) + kind;
    RangeName& out = names_[uint64_t{static_cast<uint32_t>(name)} << 8 | place];
    out.name = name;
    out.on_device = on_device;
    if (on_device) {
      out.device_kind = static_cast<DeviceKind>(kind);
    } else {
      out.host_kind = static_cast<HostKind>(kind);
    }
    return out;
  }

  void add_host(LaneId lane, RangeLane& row, std::vector<Interval>& work) {
    const HostSlices& host = model_.host_slices;
    const auto sums_of = [&](Row slice) -> RangeName& {
      return name_of_slice(host.name[slice], false, static_cast<uint8_t>(host.kind[slice]));
    };
    const auto all = [](Row) { return true; };
    sweep_lane(model_, lane, sums_.range, all, [&](const SweptSlice& slice) {
      ++row.slices;
      if (host.kind[slice.row] != HostKind::kSpan) work.push_back(slice.part);
      const int64_t length = slice.part.end_ns - slice.part.start_ns;
      RangeName& own = sums_of(slice.row);
      ++own.count;
      own.total_ns += length;
      own.self_ns += length;
      if (slice.around != kNoRow) sums_of(slice.around).self_ns -= slice.covers_ns;
    });
  }

  void add_device(size_t lane, RangeLane& row, std::vector<Interval>& work) {
    const DeviceSlices& device = model_.device_slices;
    Interval part;
    for (Row slice = model_.lanes.device_begin[lane]; slice < model_.lanes.device_end[lane]; ++slice) {
      if (device.start_ns[slice] >= sums_.range.end_ns) break;
      if (!clip(device.start_ns[slice], device.end_ns(slice), part)) continue;
      ++row.slices;
      if (is_device_work(device.kind[slice])) work.push_back(part);
      RangeName& own = name_of_slice(device.name[slice], true, static_cast<uint8_t>(device.kind[slice]));
      const int64_t length = std::max<int64_t>(0, part.end_ns - part.start_ns);
      ++own.count;
      own.total_ns += length;
      own.self_ns += length;
    }
  }

  const Model& model_;
  RangeSums sums_;
  std::unordered_map<uint64_t, RangeName> names_;  // by name and kind
  std::array<RangeKind, 256> kinds_{};
};

}  // namespace

RangeSums range_sums(const Model& model, const Interval& range, const std::optional<std::vector<LaneId>>& lanes) {
  RangeSummer summer(model, range);
  if (lanes) {
    for (const LaneId lane : *lanes) summer.add_lane(lane);
  } else {
    for (size_t lane = 0; lane < model.lanes.size(); ++lane) summer.add_lane(static_cast<LaneId>(lane));
  }
  return summer.take();
}

}  // namespace firelane::analyze
