#include "model/trace_builder.h"

#include <algorithm>

#include <cmath>
#include <string>

#include "model/copy_name.h"
#include "model/gpu_counters.h"
#include "model/module_call.h"

namespace firelane {

namespace {
constexpr int64_t kPid = 100;
int64_t to_ns(double us) { return std::llround(us * 1000); }
}  // namespace

TraceBuilder::TraceBuilder() {
  raw_.pools.emplace_back();
  raw_.parts.emplace_back();
  raw_.info.format = "built by hand";
}

LaneId TraceBuilder::thread_lane(int64_t thread) { return raw_.pools[0].lane({.number = kPid}, {.number = thread}); }

RawHostSlice& TraceBuilder::add_host(std::string_view name, std::string_view category, HostKind kind,
                                     const SliceArgs& at) {
  return raw_.parts[0].host_slices.emplace_back(RawHostSlice{.start_ns = to_ns(at.start_us),
                                                             .duration_ns = to_ns(at.end_us) - to_ns(at.start_us),
                                                             .lane = thread_lane(at.thread),
                                                             .name = intern(name),
                                                             .category = intern(category),
                                                             .kind = kind});
}

TraceBuilder& TraceBuilder::op(std::string_view name, const OpArgs& args) {
  RawPart& part = raw_.parts[0];
  RawHostSlice& slice = add_host(name, "cpu_op", HostKind::kOp,
                                 {.start_us = args.start_us, .end_us = args.end_us, .thread = args.thread});
  slice.detail = static_cast<Row>(part.op_details.size());
  part.op_details.push_back({.external_id = args.external_id,
                             .sequence_number = args.sequence_number,
                             .forward_thread = args.forward_thread,
                             .flops = args.flops,
                             .input_dims = intern(args.dims),
                             .input_types = intern(args.types),
                             .input_strides = intern(args.strides),
                             .concrete_inputs = intern(args.concrete),
                             .tensors = intern(args.tensors),
                             .stack = intern(args.stack),
                             .overload = intern(args.overload)});
  return *this;
}

TraceBuilder& TraceBuilder::annotation(std::string_view name, const OpArgs& args) {
  op(name, args);
  RawHostSlice& slice = raw_.parts[0].host_slices.back();
  slice.kind = HostKind::kAnnotation;
  slice.category = intern("user_annotation");
  return *this;
}

TraceBuilder& TraceBuilder::step(int64_t number, const SliceArgs& args) {
  return annotation("ProfilerStep#" + std::to_string(number),
                    {.start_us = args.start_us, .end_us = args.end_us, .thread = args.thread});
}

TraceBuilder& TraceBuilder::python(std::string_view name, const SliceArgs& args) {
  add_host(name, "python_function", HostKind::kPython, args);
  raw_.parts[0].host_slices.back().module = module_call_of_frame(name);
  return *this;
}

TraceBuilder& TraceBuilder::overhead(std::string_view name, const SliceArgs& args) {
  add_host(name, "overhead", HostKind::kOverhead, args);
  return *this;
}

TraceBuilder& TraceBuilder::call(std::string_view name, const CallArgs& args) {
  RawPart& part = raw_.parts[0];
  RawHostSlice& slice =
      add_host(name, args.driver ? "cuda_driver" : "cuda_runtime", args.driver ? HostKind::kDriver : HostKind::kRuntime,
               {.start_us = args.start_us, .end_us = args.end_us, .thread = args.thread});
  slice.detail = static_cast<Row>(part.call_details.size());
  part.call_details.push_back({.correlation = args.correlation, .external_id = args.external_id});
  return *this;
}

RawDeviceSlice& TraceBuilder::add_device(std::string_view name, std::string_view category, DeviceKind kind,
                                         const KernelArgs& at) {
  const LaneId lane = raw_.pools[0].lane({.number = at.device}, {.number = at.stream});
  return raw_.parts[0].device_slices.emplace_back(RawDeviceSlice{.start_ns = to_ns(at.start_us),
                                                                 .duration_ns = to_ns(at.end_us) - to_ns(at.start_us),
                                                                 .correlation = at.correlation,
                                                                 .external_id = at.external_id,
                                                                 .stream = at.stream,
                                                                 .lane = lane,
                                                                 .name = intern(name),
                                                                 .category = intern(category),
                                                                 .kind = kind,
                                                                 .device = at.device});
}

TraceBuilder& TraceBuilder::kernel(std::string_view name, const KernelArgs& args) {
  RawPart& part = raw_.parts[0];
  add_device(name, "kernel", DeviceKind::kKernel, args).detail = static_cast<Row>(part.kernel_details.size());
  const int32_t grid_side = args.grid < 0 ? -1 : 1;
  const int32_t block_side = args.block < 0 ? -1 : 1;
  part.kernel_details.push_back({.shared_memory_bytes = args.shared_memory_bytes,
                                 .graph_id = args.graph_id,
                                 .grid_x = args.grid,
                                 .grid_y = grid_side,
                                 .grid_z = grid_side,
                                 .block_x = args.block,
                                 .block_y = block_side,
                                 .block_z = block_side,
                                 .registers = args.registers,
                                 .warps_per_sm = args.warps_per_sm,
                                 .occupancy_percent = args.occupancy_percent});
  return *this;
}

TraceBuilder& TraceBuilder::device_annotation(std::string_view name, const KernelArgs& args) {
  add_device(name, "gpu_user_annotation", DeviceKind::kAnnotation, args);
  return *this;
}

TraceBuilder& TraceBuilder::copy(std::string_view name, const CopyArgs& args) {
  const CopyKinds kinds = read_copy_name(name);
  RawPart& part = raw_.parts[0];
  RawDeviceSlice& slice = add_device(name, "gpu_memcpy", DeviceKind::kCopy,
                                     {.start_us = args.start_us,
                                      .end_us = args.end_us,
                                      .device = args.device,
                                      .stream = args.stream,
                                      .correlation = args.correlation,
                                      .external_id = args.external_id});
  slice.detail = static_cast<Row>(part.copy_details.size());
  part.copy_details.push_back({.bytes = args.bytes,
                               .graph_id = args.graph_id,
                               .source_device = args.source_device,
                               .target_device = args.target_device,
                               .bandwidth_gb_s = args.bandwidth_gb_s,
                               .direction = kinds.direction,
                               .source_memory = kinds.source,
                               .target_memory = kinds.target});
  return *this;
}

TraceBuilder& TraceBuilder::set(std::string_view name, const CopyArgs& args) {
  copy(name, args);
  RawDeviceSlice& slice = raw_.parts[0].device_slices.back();
  slice.kind = DeviceKind::kSet;
  slice.category = intern("gpu_memset");
  return *this;
}

TraceBuilder& TraceBuilder::memory(const MemoryArgs& args) {
  raw_.parts[0].memory_events.push_back({.time_ns = to_ns(args.at_us),
                                         .address = args.address,
                                         .bytes = args.bytes,
                                         .total_allocated_bytes = args.total_allocated,
                                         .total_reserved_bytes = args.total_reserved,
                                         .lane = thread_lane(args.thread),
                                         .kind = args.bytes < 0 ? MemoryEventKind::kFree : MemoryEventKind::kAlloc,
                                         .device_type = args.device_type,
                                         .device = args.device});
  return *this;
}

TraceBuilder& TraceBuilder::timed_step(int64_t number, const TimedStepArgs& args) {
  const auto known = [](double us) { return us < 0 ? kNoNumber : to_ns(us); };
  raw_.parts[0].timed_steps.push_back({.number = number,
                                       .start_ns = to_ns(args.start_us),
                                       .duration_ns = to_ns(args.end_us - args.start_us),
                                       .ran_ns = known(args.ran_us),
                                       .waited_ns = known(args.waited_us),
                                       .disturbance = args.disturbance});
  return *this;
}

TraceBuilder& TraceBuilder::instant(std::string_view name, double at_us, int64_t thread) {
  raw_.parts[0].instants.push_back({.time_ns = to_ns(at_us), .lane = thread_lane(thread), .name = intern(name)});
  return *this;
}

TraceBuilder& TraceBuilder::sample(std::string_view stack, const SampleArgs& args) {
  for (std::string_view rest = stack; !rest.empty();) {
    const size_t end = std::min(rest.find(';'), rest.size());
    intern(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  raw_.parts[0].stack_samples.push_back({.time_ns = to_ns(args.at_us),
                                         .weight_ns = to_ns(args.weight_us),
                                         .lane = thread_lane(args.thread),
                                         .stack = intern(stack),
                                         .on_cpu = !args.knows_cpu ? -1
                                                   : args.on_cpu   ? 1
                                                                   : 0,
                                         .has_gil = 0});
  return *this;
}

TraceBuilder& TraceBuilder::counter(std::string_view name, double at_us, double value) {
  raw_.parts[0].counters.push_back(
      {.time_ns = to_ns(at_us), .value = value, .pid = {.number = kPid}, .name = intern(name)});
  return *this;
}

TraceBuilder& TraceBuilder::gpu_counter(int64_t device, std::string_view name, double at_us, double value) {
  raw_.parts[0].counters.push_back({.time_ns = to_ns(at_us),
                                    .value = value,
                                    .pid = {.text = intern(gpu_counters_process(device))},
                                    .name = intern(name)});
  return *this;
}

TraceBuilder& TraceBuilder::flow(std::string_view name, int64_t id, SliceArgs from_at, SliceArgs to_at) {
  RawPart& part = raw_.parts[0];
  part.flow_ends.push_back({.time_ns = to_ns(from_at.start_us),
                            .id = id,
                            .name = intern(name),
                            .category = intern(name),
                            .lane = thread_lane(from_at.thread),
                            .phase = FlowPhase::kStart});
  part.flow_ends.push_back({.time_ns = to_ns(to_at.start_us),
                            .id = id,
                            .name = intern(name),
                            .category = intern(name),
                            .lane = thread_lane(to_at.thread),
                            .phase = FlowPhase::kEnd,
                            .bind_enclosing = true});
  return *this;
}

TraceBuilder& TraceBuilder::allocator_state(const SegmentArgs& args) {
  RawPart& part = raw_.parts[0];
  const int64_t time_ns = to_ns(args.at_us);
  int64_t filled = 0;
  for (const BlockArgs& block : args.blocks) {
    part.allocator_blocks.push_back({.time_ns = time_ns,
                                     .address = args.address + static_cast<uint64_t>(filled),
                                     .bytes = block.bytes,
                                     .device_type = 1,
                                     .device = args.device,
                                     .state = block.state});
    filled += block.bytes;
  }
  part.allocator_segments.push_back({.time_ns = time_ns,
                                     .address = args.address,
                                     .bytes = filled,
                                     .stream = args.stream,
                                     .device_type = 1,
                                     .device = args.device,
                                     .pool = intern(args.pool),
                                     .is_expandable = args.is_expandable});
  return *this;
}

TraceBuilder& TraceBuilder::allocator_event(AllocatorEventKind kind, const AllocatorArgs& args) {
  raw_.parts[0].allocator_events.push_back({.time_ns = to_ns(args.at_us),
                                            .address = args.address,
                                            .bytes = args.bytes,
                                            .stream = args.stream,
                                            .lane = thread_lane(1),
                                            .kind = kind,
                                            .device_type = 1,
                                            .device = args.device,
                                            .pool = intern(args.pool)});
  return *this;
}

TraceBuilder& TraceBuilder::device(const DeviceProperties& properties) {
  raw_.info.devices.push_back(properties);
  return *this;
}

TraceBuilder& TraceBuilder::metadata(std::string_view key, std::string_view json) {
  raw_.info.metadata.push_back({std::string(key), std::string(json)});
  return *this;
}

TraceBuilder& TraceBuilder::device_window(double start_us, double end_us) {
  raw_.info.recorder.device_window = {to_ns(start_us), to_ns(end_us)};
  return *this;
}

Model TraceBuilder::build() {
  raw_.parts[0].event_count = raw_.parts[0].host_slices.size() + raw_.parts[0].device_slices.size();
  return assemble(std::move(raw_));
}

}  // namespace firelane
