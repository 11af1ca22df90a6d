#include "analyze/graph/graph_device.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "analyze/device/device_work.h"

namespace firelane::analyze {

namespace {

constexpr int64_t kUsualLaunchNs = 5'000;  // when the trace shows no launch onto an idle stream
constexpr int64_t kUsualGapNs = 1'000;     // when no two pieces of work were queued
constexpr int64_t kLongQueuedNs = 20'000;  // launched this long before the stream was free: only the gap delays it
constexpr int64_t kAmdSkewNs = 20'000;     // 8 us in a trace of an MI300; CUPTI's clock is the host's within one

// The lower quartile: what is usual when some of the values contain waits of another kind.
int64_t usual_of(std::vector<int64_t>& values, int64_t otherwise) {
  if (values.empty()) return otherwise;
  const auto quartile = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 4);
  std::nth_element(values.begin(), quartile, values.end());
  return *quartile;
}

void find_launches(const Model& model, DeviceFacts& facts) {
  const DeviceSlices& slices = model.device_slices;
  facts.last_work_of.assign(model.host_slices.size(), kNoRow);
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_device_work(slices.kind[row])) continue;
    const Row launch = slices.launch[row];
    facts.starts.push_back(slices.start_ns[row]);
    if (launch == kNoRow) continue;
    facts.launch_starts.push_back(model.host_slices.start_ns[launch]);
    Row& last = facts.last_work_of[launch];
    if (last == kNoRow || slices.end_ns(last) < slices.end_ns(row)) last = row;
  }
  std::sort(facts.starts.begin(), facts.starts.end());
  std::sort(facts.launch_starts.begin(), facts.launch_starts.end());
}

void find_usual_latencies(const Model& model, DeviceFacts& facts) {
  const DeviceSlices& slices = model.device_slices;
  std::vector<int64_t> onto_idle;
  std::vector<int64_t> queued;
  each_in_stream(model, [&](Row row, Row before) {
    const int64_t launched = launch_start(model, row);
    const int64_t free_since = before == kNoRow ? INT64_MIN : slices.end_ns(before);
    if (launched == kNoNumber || launched > slices.start_ns[row]) return;
    if (free_since <= launched) onto_idle.push_back(slices.start_ns[row] - launched);
    const bool long_queued = free_since > launched + kLongQueuedNs;
    if (long_queued && slices.start_ns[row] >= free_since) queued.push_back(slices.start_ns[row] - free_since);
  });
  facts.launch_latency_ns = usual_of(onto_idle, kUsualLaunchNs);
  facts.stream_gap_ns = usual_of(queued, kUsualGapNs);
}

// cudaStreamWaitEvent, from the records that say which event of which stream was meant.
void find_stream_waits(const Model& model, DeviceFacts& facts) {
  const SyncDetails& syncs = model.sync_details;
  if (syncs.size() == 0) return;
  std::unordered_map<int64_t, Row> call_of;  // cudaEventRecord by correlation
  for (Row i = 0; i < model.call_details.size(); ++i) {
    const Row slice = model.call_details.slice[i];
    if (slice == kNoRow || model.call_details.correlation[i] == kNoNumber) continue;
    call_of.emplace(model.call_details.correlation[i], slice);
  }
  std::unordered_map<int64_t, std::vector<std::pair<int64_t, Row>>> by_stream;  // (launch, row) by launch
  each_in_stream(model, [&](Row row, Row) {
    const int64_t launched = launch_start(model, row);
    if (launched != kNoNumber) by_stream[model.device_slices.stream[row]].push_back({launched, row});
  });
  for (auto& [stream, work] : by_stream) std::sort(work.begin(), work.end());
  for (Row i = 0; i < syncs.size(); ++i) {
    const Row slice = syncs.slice[i];
    if (slice == kNoRow || syncs.wait_on_stream[i] == kNoNumber) continue;
    if (model.text(model.device_slices.name[slice]).find("Wait") == std::string_view::npos) continue;
    const auto recorded = call_of.find(syncs.wait_on_correlation[i]);
    const auto waiting = call_of.find(model.device_slices.correlation[slice]);
    if (recorded == call_of.end() || waiting == call_of.end()) continue;
    const auto& sources = by_stream[syncs.wait_on_stream[i]];
    const auto& targets = by_stream[model.device_slices.stream[slice]];
    const int64_t recorded_ns = model.host_slices.start_ns[recorded->second];
    const int64_t waiting_ns = model.host_slices.start_ns[waiting->second];
    const auto source = std::lower_bound(sources.begin(), sources.end(), std::pair<int64_t, Row>{recorded_ns, 0});
    const auto target = std::lower_bound(targets.begin(), targets.end(), std::pair<int64_t, Row>{waiting_ns, 0});
    if (source == sources.begin() || target == targets.end()) continue;
    facts.stream_waits.push_back({target->second, std::prev(source)->second});
  }
  std::sort(facts.stream_waits.begin(), facts.stream_waits.end());
}

}  // namespace

int64_t DeviceFacts::queue_depth(int64_t time_ns) const {
  const auto launched = std::upper_bound(launch_starts.begin(), launch_starts.end(), time_ns);
  const auto started = std::upper_bound(starts.begin(), starts.end(), time_ns);
  return (launched - launch_starts.begin()) - (started - starts.begin());
}

DeviceFacts device_facts(const Model& model) {
  DeviceFacts facts;
  find_launches(model, facts);
  find_usual_latencies(model, facts);
  find_stream_waits(model, facts);
  if (model.info.accelerator == Accelerator::kHip) facts.clock_skew_ns = kAmdSkewNs;
  return facts;
}

}  // namespace firelane::analyze
