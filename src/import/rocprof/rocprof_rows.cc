#include "import/rocprof/rocprof_rows.h"

#include <algorithm>
#include <string>

#include "model/copy_name.h"

namespace firelane::importer {

namespace {

int32_t as_int32(int64_t number) { return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number); }

// Blocks of a grid that is given in work-items.
int32_t blocks_of(int64_t items, int64_t workgroup) {
  if (items <= 0 || workgroup <= 0 || items > INT64_MAX / 2) return -1;
  return as_int32((items + workgroup - 1) / workgroup);
}

CopyDirection direction_named(std::string_view text) {
  std::string word;
  for (const char c : text) {
    if (c != '_' && c != ' ') word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (has("hosttodevice")) return CopyDirection::kHtoD;
  if (has("devicetohost")) return CopyDirection::kDtoH;
  if (has("devicetodevice")) return CopyDirection::kDtoD;
  return has("hosttohost") ? CopyDirection::kHtoH : CopyDirection::kUnknown;
}

}  // namespace

bool RocprofRows::read_place(int64_t start_ns, int64_t end_ns, int64_t& start, int64_t& duration) {
  ++part_.event_count;
  if (start_ns == kNoNumber) {
    ++part_.losses[Stat::kEventWithoutTime];
    return false;
  }
  if (start_ns < kMinTimeNs || start_ns > kMaxTimeNs) {
    ++part_.losses[Stat::kTimeOutOfRange];
    return false;
  }
  start = start_ns;
  duration = 0;
  if (end_ns == kNoNumber) {
    ++part_.losses[Stat::kDurationMissing];
  } else if (end_ns < start_ns || end_ns > kMaxTimeNs) {
    ++part_.losses[Stat::kDurationOutOfRange];
  } else {
    duration = end_ns - start_ns;
  }
  return true;
}

// A stream of HIP, where the record has one, else a queue of HSA.
LaneId RocprofRows::stream_lane(int64_t device, int64_t stream, int64_t queue) {
  if (stream != kNoNumber) return pool_.lane({.number = device}, {.number = stream});
  return pool_.lane({.number = device},
                    queue == kNoNumber ? TraceId{.number = 0} : pool_.text_id("queue " + std::to_string(queue)));
}

void RocprofRows::add(const RocprofDispatch& dispatch) {
  RawDeviceSlice slice{.kind = DeviceKind::kKernel};
  if (!read_place(dispatch.start_ns, dispatch.end_ns, slice.start_ns, slice.duration_ns)) return;
  std::string_view name = dispatch.kernel;
  if (name.ends_with(".kd")) name.remove_suffix(3);
  if (name.empty()) {
    ++part_.losses[Stat::kNameMissing];
    name = "kernel without a name";
  }
  slice.name = pool_.strings.intern(std::string(name));
  slice.category = pool_.strings.intern("kernel");
  slice.correlation = dispatch.correlation;
  slice.device = as_int32(dispatch.device);
  slice.stream = dispatch.stream != kNoNumber ? dispatch.stream : dispatch.queue;
  slice.lane = stream_lane(dispatch.device, dispatch.stream, dispatch.queue);
  part_.kernel_details.push_back({.shared_memory_bytes = dispatch.group_segment_bytes,
                                  .grid_x = blocks_of(dispatch.grid[0], dispatch.workgroup[0]),
                                  .grid_y = blocks_of(dispatch.grid[1], dispatch.workgroup[1]),
                                  .grid_z = blocks_of(dispatch.grid[2], dispatch.workgroup[2]),
                                  .block_x = as_int32(dispatch.workgroup[0]),
                                  .block_y = as_int32(dispatch.workgroup[1]),
                                  .block_z = as_int32(dispatch.workgroup[2]),
                                  .registers = as_int32(dispatch.registers)});
  slice.detail = static_cast<Row>(part_.kernel_details.size() - 1);
  part_.device_slices.push_back(slice);
}

void RocprofRows::add(const RocprofCopy& copy) {
  RawDeviceSlice slice{.kind = DeviceKind::kCopy};
  if (!read_place(copy.start_ns, copy.end_ns, slice.start_ns, slice.duration_ns)) return;
  RawCopy details{.bytes = copy.bytes < 0 ? kNoNumber : copy.bytes, .direction = direction_named(copy.direction)};
  slice.name = pool_.strings.intern(copy_name({details.direction, MemoryKind::kUnknown, MemoryKind::kUnknown}));
  slice.category = pool_.strings.intern("gpu_memcpy");
  slice.correlation = copy.correlation;
  slice.device = as_int32(copy.device);
  // Engines copy beside the kernels of a stream.
  slice.lane = copy.stream == kNoNumber ? pool_.lane({.number = copy.device}, pool_.text_id("copies"))
                                        : pool_.lane({.number = copy.device}, {.number = copy.stream});
  slice.stream = copy.stream;
  if (slice.duration_ns > 0 && details.bytes > 0) {
    details.bandwidth_gb_s =
        static_cast<float>(static_cast<double>(details.bytes) / static_cast<double>(slice.duration_ns));
  }
  part_.copy_details.push_back(details);
  slice.detail = static_cast<Row>(part_.copy_details.size() - 1);
  part_.device_slices.push_back(slice);
}

void RocprofRows::add(const RocprofRegion& region) {
  RawHostSlice slice;
  if (!read_place(region.start_ns, region.end_ns, slice.start_ns, slice.duration_ns)) return;
  slice.lane = pool_.lane({.number = region.pid}, {.number = region.tid});
  slice.name = pool_.strings.intern(std::string(region.name));
  if (region.category.starts_with("MARKER")) {
    slice.kind = HostKind::kAnnotation;
    slice.category = pool_.strings.intern("user_annotation");
    part_.op_details.emplace_back();
    slice.detail = static_cast<Row>(part_.op_details.size() - 1);
  } else if (region.category.starts_with("HIP") || region.category.starts_with("HSA")) {
    // HIP calls HSA: both may hold the launch's id, and the outer one is what people call.
    const bool is_hip = region.category.starts_with("HIP");
    slice.kind = is_hip ? HostKind::kRuntime : HostKind::kDriver;
    slice.category = pool_.strings.intern(is_hip ? "hip_runtime" : "hsa");
    part_.call_details.push_back({.correlation = region.correlation});
    slice.detail = static_cast<Row>(part_.call_details.size() - 1);
  } else {
    slice.kind = HostKind::kOther;
    slice.category = pool_.strings.intern(std::string(region.category));
  }
  part_.host_slices.push_back(slice);
}

void describe_rocprof(TraceInfo& info, std::string_view form) {
  info.format = "rocprofv3 " + std::string(form);
  info.origin = Origin::kRocprof;
  info.accelerator = Accelerator::kHip;
}

}  // namespace firelane::importer
