#include "analyze/verdict/group_bounds.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "analyze/host/dispatch.h"
#include "analyze/host/host_calls.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"
#include "model/host_role.h"

namespace firelane::analyze {

namespace {

// Host and device time this close to each other: neither limits alone.
constexpr double kClose = 1.25;

using BoundsByName = std::unordered_map<uint32_t, GroupBound>;  // by name

std::vector<GroupBound> finish(BoundsByName& sums) {
  std::vector<GroupBound> rows;
  for (auto& [name, group] : sums) {
    // Loading is input, whatever it launches.
    const bool is_input = loads_batch(role_of(group.name)) || group.name == name_of(Phase::kData);
    const bool computes = group.ops > 0 && group.host_ns > 2 * kDispatchNs * group.ops;
    group.limit = is_input   ? Limit::kInput
                  : computes ? Limit::kCompute
                             : group_limit(group.host_ns, group.device_ns, group.compute_ns);
    rows.push_back(std::move(group));
  }
  std::sort(rows.begin(), rows.end(), [](const GroupBound& a, const GroupBound& b) {
    const int64_t a_ns = std::max(a.host_ns, a.device_ns);
    const int64_t b_ns = std::max(b.host_ns, b.device_ns);
    return a_ns != b_ns ? a_ns > b_ns : a.name < b.name;
  });
  return rows;
}

bool inside(const Interval& window, int64_t time_ns) { return time_ns >= window.start_ns && time_ns < window.end_ns; }

void add_work(const Model& model, const std::vector<Limit>& limits, Row row, GroupBound& group) {
  group.device_ns += model.device_slices.duration_ns[row];
  if (limits[row] == Limit::kCompute) group.compute_ns += model.device_slices.duration_ns[row];
}

// Calls that wait for the device in the window.
template <typename Fn>
void each_wait(const Model& model, const Interval& window, const Fn& fn) {
  CallKinds kinds(model);
  for (const Row row : model.call_details.slice) {
    if (row == kNoRow || !inside(window, model.host_slices.start_ns[row])) continue;
    if (is_blocking(kinds.of(row))) fn(row);
  }
}

}  // namespace

Limit group_limit(int64_t host_ns, int64_t device_ns, int64_t compute_ns) {
  if (device_ns <= 0) return host_ns > 0 ? Limit::kOverhead : Limit::kUnknown;
  const auto host = static_cast<double>(host_ns);
  const auto device = static_cast<double>(device_ns);
  if (host > device * kClose) return Limit::kOverhead;
  if (host * kClose >= device) return Limit::kMixed;
  return static_cast<double>(compute_ns) * 2 >= device ? Limit::kCompute : Limit::kMemory;
}

std::vector<GroupBound> operator_bounds(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  const std::vector<Limit>& limits = study.work_limits;
  const Interval& window = study.steps.window;
  const HostSlices& slices = model.host_slices;
  const bool on_cpu = !study.has_device_work;
  std::vector<Row> outermost(slices.size(), kNoRow);  // the outermost op a slice lies in
  BoundsByName sums;
  for (Row row = 0; row < slices.size(); ++row) {
    const Row parent = slices.parent[row];
    outermost[row] = parent == kNoRow ? kNoRow : outermost[parent];
    if (on_cpu && slices.kind[row] == HostKind::kOp) {
      const Row outer = outermost[row] == kNoRow ? row : outermost[row];
      if (inside(window, slices.start_ns[outer])) ++sums[static_cast<uint32_t>(slices.name[outer])].ops;
    }
    if (outermost[row] != kNoRow || slices.kind[row] != HostKind::kOp) continue;
    outermost[row] = row;
    if (!inside(window, slices.start_ns[row])) continue;
    GroupBound& sum = sums[static_cast<uint32_t>(slices.name[row])];
    if (sum.calls++ == 0) sum.name = model.text(slices.name[row]);
    sum.host_ns += slices.duration_ns[row];
  }
  each_wait(model, window, [&](Row call) {
    const Row op = outermost[call];
    if (op != kNoRow && inside(window, slices.start_ns[op])) {
      sums[static_cast<uint32_t>(slices.name[op])].host_ns -= slices.duration_ns[call];
    }
  });
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    const Row op = outermost[launch];
    if (op == kNoRow || !inside(window, slices.start_ns[op])) continue;
    add_work(model, limits, row, sums[static_cast<uint32_t>(slices.name[op])]);
  }
  return finish(sums);
}

std::vector<GroupBound> phase_bounds(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  const HostTime& host = *study.host;
  const std::vector<Limit>& limits = study.work_limits;
  const Interval& window = study.steps.window;
  if (host.chains.empty()) return {};
  const auto& phases = trace.get<find_phases>();
  const bool on_cpu = !study.has_device_work;
  BoundsByName sums;
  const auto group = [&](Phase phase) -> GroupBound& {
    GroupBound& sum = sums[static_cast<uint32_t>(phase)];
    sum.name = name_of(phase);
    return sum;
  };
  const HostChain& chain = host.chains[0];
  Phase last = Phase::kNone;
  for (size_t i = chain.segment_after(window.start_ns); i < chain.segments.size(); ++i) {
    const HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= window.end_ns) break;
    const Phase phase = segment.activity == Activity::kInput ? Phase::kData
                        : segment.slice == kNoRow            ? Phase::kNone
                                                             : phases.host[segment.slice];
    // What stands between two pieces of a phase belongs to none; a call is counted where the phase begins.
    if (phase != last && phase != Phase::kNone) ++group(phase).calls;
    if (phase != Phase::kNone) last = phase;
    if (segment.activity == Activity::kSync) continue;
    group(phase).host_ns += std::min(segment.end_ns, window.end_ns) - std::max(segment.start_ns, window.start_ns);
  }
  for (Row row = 0; on_cpu && row < model.host_slices.size(); ++row) {
    if (model.host_slices.kind[row] != HostKind::kOp || !inside(window, model.host_slices.start_ns[row])) continue;
    ++group(phases.host[row]).ops;
  }
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    if (!inside(window, model.host_slices.start_ns[launch])) continue;
    add_work(model, limits, row, group(phases.device[row]));
  }
  return finish(sums);
}

std::vector<GroupBound> annotation_bounds(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  const HostTime& host = *study.host;
  const std::vector<Limit>& limits = study.work_limits;
  const Interval& window = study.steps.window;
  if (host.chains.empty()) return {};
  BoundsByName sums;
  const HostSlices& slices = model.host_slices;
  struct Span {
    int64_t start_ns, end_ns;
    StringId name;
  };
  std::vector<Span> spans;  // not nested: the outermost below the step
  const auto lane = static_cast<size_t>(host.chains[0].lanes[0]);
  int64_t until = INT64_MIN;
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
    if (slices.kind[row] != HostKind::kAnnotation || !inside(window, slices.start_ns[row])) continue;
    if (slices.start_ns[row] < until || slices.role[row] == HostRole::kStep) continue;
    until = slices.end_ns(row);
    spans.push_back({slices.start_ns[row], until, slices.name[row]});
    GroupBound& sum = sums[static_cast<uint32_t>(slices.name[row])];
    if (sum.calls++ == 0) sum.name = model.text(slices.name[row]);
    const ActivityTimes times = host.chains[0].times_in(slices.start_ns[row], until);
    sum.host_ns += slices.duration_ns[row] - times[static_cast<size_t>(Activity::kSync)];
  }
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    const int64_t at = slices.start_ns[launch];
    const auto after =
        std::partition_point(spans.begin(), spans.end(), [&](const Span& span) { return span.start_ns <= at; });
    if (after == spans.begin() || std::prev(after)->end_ns <= at) continue;
    add_work(model, limits, row, sums[static_cast<uint32_t>(std::prev(after)->name)]);
  }
  return finish(sums);
}

}  // namespace firelane::analyze
