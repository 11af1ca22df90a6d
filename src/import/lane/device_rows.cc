#include "import/lane/device_rows.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "model/copy_name.h"
#include "model/gpu_counters.h"
#include "model/host_role.h"

namespace firelane::importer {
namespace {

// CUPTI's numbers, in Kineto's words.
constexpr std::string_view kSyncs[] = {"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                       "Context Sync"};
constexpr std::string_view kOverheads[] = {"Unknown",
                                           "Buffer Flush",
                                           "Instrumentation",
                                           "Resource",
                                           "Runtime Triggered Module Loading",
                                           "Lazy Function Loading",
                                           "Command Buffer Full",
                                           "Activity Buffer Request"};
constexpr int64_t kDriverCompiler = 1;
// Host-side waits lie beside the stream they wait for, as Kineto puts them.
constexpr int64_t kSyncLane = 1'000'000;
constexpr int64_t kStreamWaitEvent = 2;
constexpr int64_t kDeviceLane = 1;
constexpr int64_t kGpuSortIndex = 5'000'000;

template <size_t N>
std::string_view word(const std::string_view (&words)[N], int64_t number) {
  return number >= 0 && number < static_cast<int64_t>(N) ? words[number] : words[0];
}

// For kinds in CUPTI's order.
template <IsKind Kind>
Kind kind_of(int64_t number) {
  const auto count = static_cast<int64_t>(words_of(Kind{}).size());
  return number > 0 && number < count ? static_cast<Kind>(number) : Kind{};
}

int64_t or_none(int64_t id) { return id == 0 ? kNoNumber : id; }

float bandwidth(int64_t bytes, int64_t ns) { return ns > 0 ? static_cast<float>(bytes) / static_cast<float>(ns) : -1; }

}  // namespace

DeviceRows::DeviceRows(RawTrace& raw, RawPool& pool, RawPart& part) : raw_(raw), pool_(pool), part_(part) {
  kernel_ = pool_.strings.intern("kernel");
  copy_ = pool_.strings.intern("gpu_memcpy");
  set_ = pool_.strings.intern("gpu_memset");
  sync_ = pool_.strings.intern("cuda_sync");
  annotation_ = pool_.strings.intern("gpu_user_annotation");
  runtime_ = pool_.strings.intern("cuda_runtime");
  driver_ = pool_.strings.intern("cuda_driver");
  overhead_ = pool_.strings.intern("overhead");
}

// ---- reading ----------------------------------------------------------------------------

void DeviceRows::add(format::DeviceReader reader, const std::function<StringId(uint32_t)>& text) {
  const auto each = [&]<typename Row>(Row row, auto&& use) {
    while (reader.next(row)) use(row);
  };
  while (reader.next_table()) {
    switch (reader.table()) {
      case format::DeviceTable::kKernel:
        each(format::DeviceKernelRow{},
             [&](const format::DeviceKernelRow& r) { kernel(r, text(static_cast<uint32_t>(r.name))); });
        break;
      case format::DeviceTable::kCopy:
        each(format::DeviceCopyRow{}, [&](const format::DeviceCopyRow& r) { copy(r); });
        break;
      case format::DeviceTable::kSet:
        each(format::DeviceSetRow{}, [&](const format::DeviceSetRow& r) { set(r); });
        break;
      case format::DeviceTable::kSync:
        each(format::DeviceSyncRow{}, [&](const format::DeviceSyncRow& r) { syncs_.push_back(r); });
        break;
      case format::DeviceTable::kEvent:
        each(format::DeviceEventRow{}, [&](const format::DeviceEventRow& r) {
          if (r.event_sync != 0) events_[r.event_sync] = {.stream = r.stream, .correlation = r.correlation};
        });
        break;
      case format::DeviceTable::kCall:
        each(format::DeviceCallRow{},
             [&](const format::DeviceCallRow& r) { call(r, text(static_cast<uint32_t>(r.name))); });
        break;
      case format::DeviceTable::kOverhead:
        each(format::DeviceOverheadRow{}, [&](const format::DeviceOverheadRow& r) { overhead(r); });
        break;
      case format::DeviceTable::kMetric:
        each(format::DeviceMetricRow{},
             [&](const format::DeviceMetricRow& r) { metric(r, text(static_cast<uint32_t>(r.name))); });
        break;
    }
  }
  if (reader.damaged()) ++part_.losses[Stat::kLaneChunkDamaged];
}

void DeviceRows::add_clock(const format::DeviceClockNote& note) {
  readings_.push_back({.ticks = note.ticks, .device_ns = note.device_ns, .width_ticks = note.width_ticks});
}

RawDeviceSlice& DeviceRows::slice(int64_t start_ns, int64_t duration_ns, int64_t device, int64_t stream,
                                  int64_t correlation) {
  RawDeviceSlice& s = part_.device_slices.emplace_back();
  s.start_ns = start_ns;
  s.duration_ns = std::clamp<int64_t>(duration_ns, 0, kMaxDurationNs);
  s.correlation = or_none(correlation);
  s.stream = stream;
  s.lane = pool_.lane({.number = device}, {.number = stream});
  s.device = static_cast<int32_t>(device);
  ++part_.event_count;
  return s;
}

// One kernel's name is asked for thousands of times.
StringId DeviceRows::readable(StringId mangled) {
  const auto [at, added] = readable_.try_emplace(static_cast<uint32_t>(mangled), mangled);
  if (!added) return at->second;
  const std::string name(pool_.strings.view(mangled));
  if (!name.starts_with("_Z")) return mangled;
  int status = -1;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  if (status == 0 && text != nullptr) at->second = pool_.strings.intern(text.get());
  return at->second;
}

void DeviceRows::kernel(const format::DeviceKernelRow& row, StringId name) {
  RawDeviceSlice& s = slice(row.start_ns, row.duration_ns, row.device, row.stream, row.correlation);
  s.name = readable(name);
  s.category = kernel_;
  s.kind = DeviceKind::kKernel;
  s.detail = static_cast<Row>(part_.kernel_details.size());
  device_of_context_[row.context] = s.device;
  RawKernel& k = part_.kernel_details.emplace_back();
  k.grid_x = static_cast<int32_t>(row.grid_x);
  k.grid_y = static_cast<int32_t>(row.grid_y);
  k.grid_z = static_cast<int32_t>(row.grid_z);
  k.block_x = static_cast<int32_t>(row.block_x);
  k.block_y = static_cast<int32_t>(row.block_y);
  k.block_z = static_cast<int32_t>(row.block_z);
  k.registers = static_cast<int32_t>(row.registers);
  k.shared_memory_bytes = static_cast<int64_t>(static_cast<uint64_t>(row.static_shared_bytes) +
                                               static_cast<uint64_t>(row.dynamic_shared_bytes));
  k.context = row.context;
  k.graph_id = or_none(row.graph_id);
  k.graph_node_id = or_none(row.graph_node_id);
}

void DeviceRows::copy(const format::DeviceCopyRow& row) {
  RawDeviceSlice& s = slice(row.start_ns, row.duration_ns, row.device, row.stream, row.correlation);
  const CopyKinds kinds{kind_of<CopyDirection>(row.direction), kind_of<MemoryKind>(row.source_memory),
                        kind_of<MemoryKind>(row.target_memory)};
  s.name = pool_.strings.intern(copy_name(kinds));
  s.category = copy_;
  s.kind = DeviceKind::kCopy;
  s.detail = static_cast<Row>(part_.copy_details.size());
  device_of_context_[row.context] = s.device;
  const bool is_between_devices = kinds.direction == CopyDirection::kPtoP || row.source_device != row.target_device;
  part_.copy_details.push_back({.bytes = row.bytes,
                                .context = row.context,
                                .graph_id = or_none(row.graph_id),
                                .graph_node_id = or_none(row.graph_node_id),
                                .source_device = is_between_devices ? row.source_device : kNoNumber,
                                .target_device = is_between_devices ? row.target_device : kNoNumber,
                                .direction = kinds.direction,
                                .source_memory = kinds.source,
                                .target_memory = kinds.target});
}

void DeviceRows::set(const format::DeviceSetRow& row) {
  RawDeviceSlice& s = slice(row.start_ns, row.duration_ns, row.device, row.stream, row.correlation);
  const auto memory = kind_of<MemoryKind>(row.memory);
  s.name = pool_.strings.intern(memset_name(memory));
  s.category = set_;
  s.kind = DeviceKind::kSet;
  s.detail = static_cast<Row>(part_.copy_details.size());
  part_.copy_details.push_back({.bytes = row.bytes,
                                .context = row.context,
                                .graph_id = or_none(row.graph_id),
                                .graph_node_id = or_none(row.graph_node_id),
                                .target_memory = memory});
}

void DeviceRows::call(const format::DeviceCallRow& row, StringId name) {
  calls_.push_back({.start_ns = row.start_ns,
                    .duration_ns = std::clamp<int64_t>(row.duration_ns, 0, kMaxDurationNs),
                    .name = name,
                    .category = row.is_driver != 0 ? driver_ : runtime_,
                    .kind = row.is_driver != 0 ? HostKind::kDriver : HostKind::kRuntime,
                    .detail = static_cast<Row>(row.thread_id)});
  call_details_.push_back({.correlation = or_none(row.correlation)});
  ++part_.event_count;
}

void DeviceRows::overhead(const format::DeviceOverheadRow& row) {
  const std::string_view name = row.type == kDriverCompiler ? "Driver Compiler" : word(kOverheads, row.type >> 16);
  overheads_.push_back({.start_ns = row.start_ns,
                        .duration_ns = std::clamp<int64_t>(row.duration_ns, 0, kMaxDurationNs),
                        .lane = pool_.lane({.number = kProfilerPid}, {.number = 0}),
                        .name = pool_.strings.intern(name),
                        .category = overhead_,
                        .kind = HostKind::kOverhead});
  ++part_.event_count;
}

// A counter's value holds from its time on, so that the sample's begin is its time. In Kineto's words.
void DeviceRows::metric(const format::DeviceMetricRow& row, StringId name) {
  metrics_.push_back({.time_ns = row.start_ns,
                      .value = std::bit_cast<double>(row.value),
                      .pid = {.text = pool_.strings.intern(gpu_counters_process(row.device))},
                      .name = name});
  ++part_.event_count;
}

// ---- the end ----------------------------------------------------------------------------

void DeviceRows::finish(const TickConverter& line, int64_t base_ns, uint32_t pid, std::string_view program) {
  add_syncs();
  convert_times(line, base_ns);
  add_calls(pid);
  add_annotations();
  name_lanes(program);
}

// The window may open and close more than once; the first opening and the last closing count.
void DeviceRows::add_window(const format::DeviceWindowNote& note) {
  if (note.is_closed) {
    closed_ns_ = note.device_ns;
  } else if (opened_ns_ == kNoNumber) {
    opened_ns_ = note.device_ns;
  }
}

// Which device a wait belongs to, and whose record it waits for, is known only when all rows are there.
void DeviceRows::add_syncs() {
  for (const format::DeviceSyncRow& row : syncs_) {
    const auto device = device_of_context_.find(row.context);
    const bool on_stream = row.type == kStreamWaitEvent;
    const int64_t lane = row.stream < 0 ? kDeviceLane : on_stream ? row.stream : row.stream + kSyncLane;
    RawDeviceSlice& s = slice(row.start_ns, row.duration_ns, device != device_of_context_.end() ? device->second : 0,
                              lane, row.correlation);
    s.stream = row.stream < 0 ? kNoNumber : row.stream;
    s.name = pool_.strings.intern(word(kSyncs, row.type));
    s.category = sync_;
    s.kind = DeviceKind::kSync;
    s.detail = static_cast<Row>(part_.sync_details.size());
    const auto event = events_.find(row.event_sync);
    const bool known = row.event_sync != 0 && event != events_.end();
    part_.sync_details.push_back({.wait_on_stream = known ? event->second.stream : kNoNumber,
                                  .wait_on_correlation = known ? event->second.correlation : kNoNumber,
                                  .wait_on_event = row.event < 0 ? kNoNumber : row.event,
                                  .context = row.context});
  }
}

void DeviceRows::convert_times(const TickConverter& line, int64_t base_ns) {
  if (readings_.empty()) readings_.emplace_back();  // a file without its first notes: times cannot be right
  const Reading& first = readings_.front();
  const Reading& last = readings_.back();
  const int64_t zero = line.unix_ns(first.ticks) - base_ns;
  const double device_span = static_cast<double>(last.device_ns) - static_cast<double>(first.device_ns);
  const double host_span = static_cast<double>(line.unix_ns(last.ticks) - line.unix_ns(first.ticks));
  // torch.profiler leaves a callback in CUPTI that gives the processor's ticks as times: then the clocks are the same.
  const bool counts_ticks = std::abs(static_cast<double>(first.device_ns) - static_cast<double>(first.ticks)) < 1e7;
  // Two readings less than a millisecond apart say nothing about the clocks' speeds.
  const double slope = counts_ticks                         ? line.ns_per_tick()
                       : device_span > 1e6 && host_span > 0 ? host_span / device_span
                                                            : 1.0;
  const auto ns = [&](int64_t device_ns) {
    const double since = (static_cast<double>(device_ns) - static_cast<double>(first.device_ns)) * slope;
    constexpr double kLimit = 1e18;
    return zero + static_cast<int64_t>(std::llround(std::clamp(since, -kLimit, kLimit)));
  };
  const auto convert = [&](auto& s) {
    const auto end = static_cast<int64_t>(static_cast<uint64_t>(s.start_ns) + static_cast<uint64_t>(s.duration_ns));
    s.start_ns = ns(s.start_ns);
    s.duration_ns = std::max<int64_t>(0, ns(end) - s.start_ns);
  };
  for (RawDeviceSlice& s : part_.device_slices) {
    convert(s);
    if (s.kind != DeviceKind::kCopy && s.kind != DeviceKind::kSet) continue;
    RawCopy& copy = part_.copy_details[s.detail];
    copy.bandwidth_gb_s = bandwidth(copy.bytes, s.duration_ns);
  }
  for (RawHostSlice& s : calls_) convert(s);
  for (RawHostSlice& s : overheads_) convert(s);
  for (RawCounter& counter : metrics_) {
    counter.time_ns = ns(counter.time_ns);
    part_.counters.push_back(counter);
  }

  RecorderInfo::DeviceWindow& window = raw_.info.recorder.device_window;
  if (opened_ns_ != kNoNumber) window.start_ns = ns(opened_ns_);
  if (closed_ns_ != kNoNumber) window.end_ns = ns(closed_ns_);

  if (part_.device_slices.empty() && calls_.empty()) return;
  double error = 0;
  for (const Reading& r : readings_) {
    const double off = static_cast<double>(ns(r.device_ns) - (line.unix_ns(r.ticks) - base_ns));
    error = std::max(error, std::abs(off) + static_cast<double>(r.width_ticks) / 2 * line.ns_per_tick());
  }
  RecorderInfo::DeviceClock& clock = raw_.info.recorder.device_clock;
  clock.readings = readings_.size();
  clock.error_ns = static_cast<int64_t>(std::ceil(std::min(error, 1e18)));
  clock.drift_ppm = counts_ticks ? 0 : (slope - 1) * 1e6;
}

void DeviceRows::add_calls(uint32_t pid) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    RawHostSlice& s = calls_[i];
    s.lane = pool_.lane({.number = pid}, {.number = s.detail});
    s.detail = static_cast<Row>(part_.call_details.size());
    part_.call_details.push_back(call_details_[i]);
    part_.host_slices.push_back(s);
  }
  for (const RawHostSlice& s : overheads_) part_.host_slices.push_back(s);
}

// A user's range on a stream reaches from the first to the last work that was launched inside it: on its own thread,
// or, for a step, on any thread (autograd launches from another).
void DeviceRows::add_annotations() {
  const auto& host = part_.host_slices;
  std::vector<Row> ranges;
  std::vector<Row> launches;  // of both sorts: seen by callbacks and by activity records
  for (Row row = 0; row < host.size(); ++row) {
    const HostKind kind = host[row].kind;
    if (kind == HostKind::kAnnotation) ranges.push_back(row);
    if (is_call(kind)) launches.push_back(row);
  }
  if (ranges.empty() || launches.empty()) return;
  const auto by_start = [&](Row a, Row b) { return host[a].start_ns < host[b].start_ns; };
  std::stable_sort(ranges.begin(), ranges.end(), by_start);
  std::stable_sort(launches.begin(), launches.end(), by_start);

  // For each launch, the ranges around it, outermost first. Launches in a row mostly share theirs.
  std::vector<std::vector<Row>> sets;
  std::unordered_map<int64_t, size_t> set_of;
  std::vector<Row> open;
  size_t next = 0;
  for (const Row row : launches) {
    const RawHostSlice& launch = host[row];
    while (next < ranges.size() && host[ranges[next]].start_ns <= launch.start_ns) open.push_back(ranges[next++]);
    std::erase_if(open, [&](Row r) { return host[r].start_ns + host[r].duration_ns <= launch.start_ns; });
    const int64_t correlation = part_.call_details[launch.detail].correlation;
    if (correlation == kNoNumber) continue;
    std::vector<Row> around;
    for (const Row r : open) {
      const bool is_step = role_of(pool_.strings.view(host[r].name)) == HostRole::kStep;
      if (is_step || host[r].lane == launch.lane) around.push_back(r);
    }
    if (around.empty()) continue;
    if (sets.empty() || sets.back() != around) sets.push_back(std::move(around));
    set_of[correlation] = sets.size() - 1;
  }

  struct Extent {
    int64_t start = INT64_MAX;
    int64_t end = INT64_MIN;
    size_t slice = 0;
  };
  std::map<std::pair<Row, uint32_t>, Extent> extents;  // by range and lane
  for (size_t i = 0; i < part_.device_slices.size(); ++i) {
    const RawDeviceSlice& s = part_.device_slices[i];
    const auto found = is_launched(s.kind) ? set_of.find(s.correlation) : set_of.end();
    if (found == set_of.end()) continue;
    for (const Row range : sets[found->second]) {
      Extent& e = extents[{range, static_cast<uint32_t>(s.lane)}];
      e.start = std::min(e.start, s.start_ns);
      e.end = std::max(e.end, s.start_ns + s.duration_ns);
      e.slice = i;
    }
  }
  for (const auto& [key, extent] : extents) {
    const RawDeviceSlice work = part_.device_slices[extent.slice];
    const RawHostSlice& range = part_.host_slices[key.first];
    part_.device_slices.push_back({.start_ns = extent.start,
                                   .duration_ns = extent.end - extent.start,
                                   .external_id = part_.op_details[range.detail].external_id,
                                   .stream = work.stream,
                                   .lane = work.lane,
                                   .name = range.name,
                                   .category = annotation_,
                                   .kind = DeviceKind::kAnnotation,
                                   .device = work.device});
    ++part_.event_count;
  }
}

void DeviceRows::name_lanes(std::string_view program) {
  using What = LaneNameKind;
  std::vector<bool> named(pool_.lanes.size());
  for (const RawDeviceSlice& s : part_.device_slices) {
    const auto lane = static_cast<uint32_t>(s.lane);
    if (named[lane]) continue;
    named[lane] = true;
    const int64_t device = pool_.lanes[lane].pid.number;
    const int64_t stream = pool_.lanes[lane].tid.number;
    const std::string name = stream == kDeviceLane ? "Device " + std::to_string(device)
                             : stream >= kSyncLane ? "stream " + std::to_string(stream - kSyncLane) + " (sync)"
                                                   : "stream " + std::to_string(stream);
    const auto add = [&](What what, std::string_view text, int64_t number) {
      part_.lane_names.push_back({.number = number, .lane = s.lane, .what = what, .text = pool_.strings.intern(text)});
    };
    add(What::kThreadName, name, kNoNumber);
    add(What::kThreadSortIndex, "", stream);
    add(What::kProcessName, program, kNoNumber);
    add(What::kProcessLabels, "GPU " + std::to_string(device), kNoNumber);
    add(What::kProcessSortIndex, "", kGpuSortIndex + device);
  }
}

}  // namespace firelane::importer
