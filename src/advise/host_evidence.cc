#include "advise/host_evidence.h"

namespace firelane::advise {

std::vector<analyze::HostCut> cuts_of(const Context& context, std::initializer_list<analyze::Activity> activities,
                                      double keep) {
  std::vector<analyze::HostCut> cuts;
  const analyze::Study& study = *context.study;
  if (study.host->chains.empty()) return cuts;
  const analyze::HostChain& chain = study.host->chains[0];
  const LaneId lane = chain.lanes[0];
  for (size_t i = chain.segment_after(context.window.start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= context.window.end_ns) break;
    if (std::find(activities.begin(), activities.end(), segment.activity) == activities.end()) continue;
    if (!cuts.empty() && cuts.back().end_ns == segment.start_ns) {
      cuts.back().end_ns = segment.end_ns;
    } else {
      cuts.push_back({lane, segment.start_ns, segment.end_ns, keep});
    }
  }
  return cuts;
}

int64_t way_start_ns(const Model& model, Row row) {
  constexpr int64_t kLongestWayNs = 20'000;
  const HostSlices& host = model.host_slices;
  Row before = row == 0 ? kNoRow : row - 1;
  while (before != kNoRow && before != host.parent[row] && host.parent[before] != host.parent[row]) {
    before = host.parent[before];
  }
  if (before == kNoRow || before == host.parent[row] || host.lane[before] != host.lane[row]) return host.start_ns[row];
  const int64_t passed = host.start_ns[row] - host.end_ns(before);
  return passed < 0 || passed > kLongestWayNs ? host.start_ns[row] : host.end_ns(before);
}

int64_t activity_ns(const Context& context, analyze::Activity activity) {
  return context.study->per_step(context.study->breakdown.total.host[static_cast<size_t>(activity)]);
}

void add_longest(Finding& finding, const Model& model, std::vector<Row> host_rows) {
  for (const Row row : host_rows) finding.behind.push_back({.row = row, .on_device = false});
  const size_t count = std::min(host_rows.size(), kEvidenceSlices);
  std::partial_sort(host_rows.begin(), host_rows.begin() + static_cast<std::ptrdiff_t>(count), host_rows.end(),
                    [&](Row a, Row b) {
                      const auto& durations = model.host_slices.duration_ns;
                      return durations[a] != durations[b] ? durations[a] > durations[b] : a < b;
                    });
  for (size_t i = 0; i < count; ++i) finding.slices.push_back({.row = host_rows[i], .on_device = false});
}

namespace {

template <typename IsWanted>
std::vector<Row> annotations_with(const Context& context, const IsWanted& is_wanted) {
  std::vector<Row> rows;
  const Model& model = context.model;
  if (context.study->host->chains.empty()) return rows;
  for (const LaneId lane : context.study->host->chains[0].lanes) {
    const auto l = static_cast<size_t>(lane);
    for (Row row = model.lanes.host_begin[l]; row < model.lanes.host_end[l]; ++row) {
      const HostKind kind = model.host_slices.kind[row];
      if (kind != HostKind::kAnnotation && kind != HostKind::kOp) continue;
      if (!context.in_window(model.host_slices.start_ns[row])) continue;
      if (is_wanted(model.host_slices.role[row])) rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace

std::vector<Row> annotations(const Context& context, HostRole role) {
  return annotations_with(context, [role](HostRole each) { return each == role; });
}
std::vector<Row> annotations(const Context& context, bool (*is_wanted)(HostRole)) {
  return annotations_with(context, is_wanted);
}

std::vector<Row> launched_during(const Model& model, std::vector<Row> host_rows) {
  const HostSlices& host = model.host_slices;
  std::sort(host_rows.begin(), host_rows.end(), [&](Row a, Row b) { return host.start_ns[a] < host.start_ns[b]; });
  std::vector<Row> rows;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    const int64_t at = host.start_ns[launch];
    const auto after =
        std::partition_point(host_rows.begin(), host_rows.end(), [&](Row each) { return host.start_ns[each] <= at; });
    if (after != host_rows.begin() && at < host.end_ns(*std::prev(after))) rows.push_back(row);
  }
  return rows;
}

LaunchedWork::LaunchedWork(const Model& model) : host_(model.host_slices) {
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.launch[row] == kNoRow || !is_device_work(device.kind[row])) continue;
    by_launch_.emplace_back(host_.start_ns[device.launch[row]], row);
  }
  std::sort(by_launch_.begin(), by_launch_.end());
}

std::vector<Row> LaunchedWork::during(Row host_row) const {
  std::vector<Row> rows;
  const int64_t end_ns = host_.end_ns(host_row);
  auto at = std::lower_bound(by_launch_.begin(), by_launch_.end(), std::pair(host_.start_ns[host_row], Row{0}));
  for (; at != by_launch_.end() && at->first < end_ns; ++at) rows.push_back(at->second);
  std::sort(rows.begin(), rows.end());
  return rows;
}

LaunchedWork launched_work(const Model& model) { return LaunchedWork(model); }

}  // namespace firelane::advise
