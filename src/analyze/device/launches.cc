#include "analyze/device/launches.h"
#include "analyze/common/median.h"

#include <algorithm>
#include <unordered_map>

namespace firelane::analyze {

namespace {

constexpr int64_t kFullQueue = 1'000;  // the driver's limit is about 1,024

struct Group {
  LaunchRow row;
  std::vector<int64_t> calls_ns;
  std::vector<int64_t> delays_ns;
};

void sample_queue(const std::vector<QueueSample>& samples, const Interval& window, LaunchTable& table) {
  int64_t depth = 0;
  int64_t now = window.start_ns;
  double depth_time = 0;
  const auto pass = [&](int64_t until) {
    const int64_t passed = std::min(until, window.end_ns) - now;
    if (passed <= 0) return;
    depth_time += static_cast<double>(depth) * static_cast<double>(passed);
    if (depth <= 0) table.empty_queue_ns += passed;
    if (depth >= kFullQueue) table.full_queue_ns += passed;
    now += passed;
  };
  for (const QueueSample& sample : samples) {
    pass(sample.time_ns);
    depth = sample.depth;
    if (sample.time_ns < window.start_ns || sample.time_ns >= window.end_ns) continue;
    table.max_depth = std::max(table.max_depth, depth);
    table.queue.push_back(sample);
  }
  pass(window.end_ns);
  const int64_t length = window.end_ns - window.start_ns;
  table.mean_depth = length <= 0 ? 0 : depth_time / static_cast<double>(length);
}

int64_t depth_at(const LaunchTable& table, int64_t time_ns) {
  const auto after = std::partition_point(table.queue.begin(), table.queue.end(),
                                          [&](const QueueSample& sample) { return sample.time_ns <= time_ns; });
  return after == table.queue.begin() ? 0 : std::prev(after)->depth;
}

}  // namespace

std::vector<QueueSample> queue_depth(const Model& model) {
  const DeviceSlices& device = model.device_slices;
  const HostSlices& host = model.host_slices;
  std::vector<QueueSample> samples;  // of changes at first
  for (Row row = 0; row < device.size(); ++row) {
    const Row launch = device.launch[row];
    if (!is_device_work(device.kind[row]) || launch == kNoRow || host.start_ns[launch] > device.start_ns[row]) continue;
    samples.push_back({host.start_ns[launch], 1});
    samples.push_back({device.start_ns[row], -1});
  }
  std::sort(samples.begin(), samples.end(), [](const QueueSample& a, const QueueSample& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.depth > b.depth;  // queued before started
  });
  int64_t depth = 0;
  for (QueueSample& sample : samples) {
    depth += sample.depth;
    sample.depth = depth;
  }
  return samples;
}

LaunchTable launch_table(const Model& model, const Interval& window) {
  LaunchTable table;
  const DeviceSlices& device = model.device_slices;
  const HostSlices& host = model.host_slices;
  struct Call {
    Row launch = kNoRow;
    Row first = kNoRow;
    int64_t work = 0;
  };
  std::vector<Call> calls;
  std::vector<uint32_t> call_of(host.size(), kNoRow);  // by host slice: index in `calls`
  for (Row row = 0; row < device.size(); ++row) {
    if (!is_device_work(device.kind[row])) continue;
    const Row launch = device.launch[row];
    if (launch == kNoRow) {
      table.without_launch += device.start_ns[row] >= window.start_ns && device.start_ns[row] < window.end_ns;
      continue;
    }
    if (host.start_ns[launch] < window.start_ns || host.start_ns[launch] >= window.end_ns) continue;
    if (call_of[launch] == kNoRow) {
      call_of[launch] = static_cast<uint32_t>(calls.size());
      calls.push_back({.launch = launch});
    }
    Call& call = calls[call_of[launch]];
    if (call.first == kNoRow || device.start_ns[row] < device.start_ns[call.first]) call.first = row;
    ++call.work;
    ++table.work;
    if (device.duration_ns[row] >= host.duration_ns[launch]) continue;
    ++table.short_work;
    table.short_work_ns += device.duration_ns[row];
  }
  sample_queue(queue_depth(model), window, table);
  std::unordered_map<uint32_t, Group> groups;
  std::vector<int64_t> delays;
  for (const Call& call : calls) {
    const Row launch = call.launch;
    Group& group = groups[static_cast<uint32_t>(host.name[launch])];
    group.row.name = host.name[launch];
    ++group.row.calls;
    group.row.work += call.work;
    group.row.call_ns += host.duration_ns[launch];
    group.row.short_work += device.duration_ns[call.first] < host.duration_ns[launch];
    group.calls_ns.push_back(host.duration_ns[launch]);
    group.delays_ns.push_back(std::max<int64_t>(0, device.start_ns[call.first] - host.end_ns(launch)));
    delays.push_back(group.delays_ns.back());
  }
  for (auto& [name, group] : groups) {
    group.row.median_call_ns = median_or_zero(group.calls_ns);
    group.row.max_delay_ns = *std::max_element(group.delays_ns.begin(), group.delays_ns.end());
    group.row.median_delay_ns = median_or_zero(group.delays_ns);
    table.calls += group.row.calls;
    table.call_ns += group.row.call_ns;
    table.rows.push_back(group.row);
  }
  table.median_delay_ns = median_or_zero(delays);
  if (table.max_depth >= kFullQueue) {
    for (const Call& call : calls) {
      const Row launch = call.launch;
      if (depth_at(table, host.start_ns[launch]) < kFullQueue) continue;
      const Group& group = groups[static_cast<uint32_t>(host.name[launch])];
      table.blocked_ns += std::max<int64_t>(0, host.duration_ns[launch] - group.row.median_call_ns);
    }
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const LaunchRow& a, const LaunchRow& b) {
    return a.call_ns != b.call_ns ? a.call_ns > b.call_ns : a.name < b.name;
  });
  return table;
}

}  // namespace firelane::analyze
