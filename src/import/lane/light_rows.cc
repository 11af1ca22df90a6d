#include "import/lane/light_rows.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "model/host_role.h"
#include "model/sampled_time.h"

namespace firelane::importer {
namespace {

constexpr int kMostCuts = 4;  // of a sample; hostile files have any number of borders

bool is_inside(const std::vector<LightWindow>& windows, int64_t time_ns) {
  const auto after = std::partition_point(windows.begin(), windows.end(),
                                          [&](const LightWindow& window) { return window.begin_ns <= time_ns; });
  return after != windows.begin() && time_ns < std::prev(after)->end_ns;
}

// Where light steps begin or end, after this time. Hostile files have as many of them as samples.
int64_t next_border(const std::vector<LightWindow>& windows, int64_t time_ns) {
  const auto next = std::partition_point(windows.begin(), windows.end(),
                                         [&](const LightWindow& window) { return window.end_ns <= time_ns; });
  if (next == windows.end()) return INT64_MAX;
  return next->begin_ns > time_ns ? next->begin_ns : next->end_ns;
}

// Strings and lanes keep their ids: both are numbered in the order in which they come.
void copy_pool(const RawPool& from, RawPool& to) {
  for (uint32_t id = 1; id < from.strings.size(); ++id) to.strings.intern(from.strings.view(StringId{id}));
  for (const RawPool::Lane& lane : from.lanes) to.lane(lane.pid, lane.tid);
}

class Splitter {
 public:
  Splitter(const RawPool& pool, RawPart& all, const std::vector<LightWindow>& windows)
      : pool_(pool), all_(all), windows_(windows) {}

  void split(RawPart& full, RawPart& light) {
    full.losses = all_.losses;
    for (const RawHostSlice& row : all_.host_slices) host_row(row, is_inside(windows_, row.start_ns) ? light : full);
    for (const RawDeviceSlice& row : all_.device_slices) device_row(row, is_light(row) ? light : full);
    by_time(full, light, &RawPart::memory_events);
    by_time(full, light, &RawPart::allocator_events);
    by_time(full, light, &RawPart::instants);
    for (const RawStackSample& row : all_.stack_samples) sample_row(row, full, light);
    by_time(full, light, &RawPart::counters);
    by_time(full, light, &RawPart::flow_ends);
    full.allocator_segments = std::move(all_.allocator_segments);
    full.allocator_blocks = std::move(all_.allocator_blocks);
    for (const RawTimedStep& row : all_.timed_steps) {
      if (row.disturbance != StepDisturbance::kRecorded) light.timed_steps.push_back(row);
    }
    full.timed_steps = std::move(all_.timed_steps);
    light.lane_names = all_.lane_names;
    full.lane_names = std::move(all_.lane_names);
    full.edges = std::move(all_.edges);
  }
  int64_t last_light_end_ns() const { return last_light_end_ns_; }

 private:
  void host_row(RawHostSlice row, RawPart& to) {
    const bool is_light = is_inside(windows_, row.start_ns);
    if (is_call(row.kind)) {
      const RawCall& call = all_.call_details[row.detail];
      if (is_light && call.correlation != kNoNumber) light_calls_.insert(call.correlation);
      row.detail = static_cast<Row>(to.call_details.size());
      to.call_details.push_back(call);
    } else if (row.detail != kNoRow) {
      const RawOp& op = all_.op_details[row.detail];
      row.detail = static_cast<Row>(to.op_details.size());
      to.op_details.push_back(op);
      if (op.comm != kNoRow) {
        to.op_details.back().comm = static_cast<Row>(to.comm_details.size());
        to.comm_details.push_back(all_.comm_details[op.comm]);
      }
    }
    if (is_light && row.kind == HostKind::kAnnotation) light_ranges_.insert(row.name);
    to.host_slices.push_back(row);
    ++to.event_count;
  }

  // Work belongs to where it was launched, even if the device came to it later.
  bool is_light(const RawDeviceSlice& row) const {
    if (row.kind == DeviceKind::kAnnotation && role_of(pool_.strings.view(row.name)) == HostRole::kStep)
      return light_ranges_.contains(row.name);
    if (row.correlation != kNoNumber && has_calls()) return light_calls_.contains(row.correlation);
    return is_inside(windows_, row.start_ns);
  }
  bool has_calls() const { return !all_.call_details.empty(); }

  void device_row(RawDeviceSlice row, RawPart& to) {
    if (is_light(row)) last_light_end_ns_ = std::max(last_light_end_ns_, row.start_ns + row.duration_ns);
    if (row.detail != kNoRow) {
      const auto move_detail = [&](const auto& from, auto& into) {
        const auto& detail = from[row.detail];
        row.detail = static_cast<Row>(into.size());
        into.push_back(detail);
      };
      if (row.kind == DeviceKind::kKernel) move_detail(all_.kernel_details, to.kernel_details);
      if (row.kind == DeviceKind::kCopy || row.kind == DeviceKind::kSet)
        move_detail(all_.copy_details, to.copy_details);
      if (row.kind == DeviceKind::kSync) move_detail(all_.sync_details, to.sync_details);
    }
    to.device_slices.push_back(row);
    ++to.event_count;
  }

  // Cut at the borders, of which a recording has one or two: a thread that waits over several steps is one sample.
  void sample_row(RawStackSample row, RawPart& full, RawPart& light) {
    const SampledTime time = sampled_time(row.time_ns, row.weight_ns, row.on_cpu);
    int64_t at = time.start_ns;
    for (int cuts = 0; cuts == 0 || at < time.end_ns; ++cuts) {
      const int64_t end = cuts < kMostCuts ? std::min(time.end_ns, next_border(windows_, at)) : time.end_ns;
      RawPart& to = is_inside(windows_, at) ? light : full;
      row.time_ns = begins_at_its_look(row.on_cpu) ? at : end;
      row.weight_ns = end - at;
      to.stack_samples.push_back(row);
      ++to.event_count;
      at = end;
    }
  }

  void by_time(RawPart& full, RawPart& light, auto table) {
    for (const auto& row : all_.*table) {
      RawPart& to = is_inside(windows_, row.time_ns) ? light : full;
      (to.*table).push_back(row);
      ++to.event_count;
    }
  }

  const RawPool& pool_;
  RawPart& all_;
  const std::vector<LightWindow>& windows_;
  std::unordered_set<int64_t> light_calls_;    // correlation ids
  std::unordered_set<StringId> light_ranges_;  // names
  int64_t last_light_end_ns_ = INT64_MIN;
};

bool has_full_rows(const RawPart& part, const std::vector<LightWindow>& windows) {
  return std::any_of(part.host_slices.begin(), part.host_slices.end(), [&](const RawHostSlice& row) {
    return row.kind == HostKind::kOp && !is_inside(windows, row.start_ns);
  });
}

}  // namespace

void split_light(RawTrace& raw, const std::vector<LightWindow>& windows) {
  if (windows.empty()) return;
  RawPart all = std::move(raw.parts.front());
  if (!has_full_rows(all, windows)) {
    raw.parts.front() = std::move(all);
    raw.info.light.is_light = true;
    return;
  }
  auto light = std::make_shared<RawTrace>();
  light->info = raw.info;
  light->info.light.is_light = true;
  for (RecorderInfo::Cost& cost : light->info.recorder.costs) cost.ns = 0;  // no ops, no frames, no allocations
  light->losses = raw.losses;
  copy_pool(raw.pools.front(), light->pools.emplace_back());
  light->parts.emplace_back();
  raw.parts.clear();
  Splitter splitter(raw.pools.front(), all, windows);
  splitter.split(raw.parts.emplace_back(), light->parts.front());

  // Light steps come before full ones in the recordings that we make.
  const int64_t boundary_ns = windows.back().end_ns;
  if (boundary_ns != INT64_MAX && raw.info.recorder.device_window.start_ns != kNoNumber) {
    raw.info.recorder.device_window.start_ns = std::max(raw.info.recorder.device_window.start_ns, boundary_ns);
    light->info.recorder.device_window.end_ns = std::max(boundary_ns, splitter.last_light_end_ns());
  }
  raw.light = std::move(light);
}

}  // namespace firelane::importer
