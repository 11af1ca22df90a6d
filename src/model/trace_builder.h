// Builds small traces by hand, for tests: one call per event, times in microseconds.
//
//   Model m = TraceBuilder()
//                 .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1})
//                 .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
//                 .kernel("gemm", {.start_us = 12, .end_us = 30, .correlation = 7, .external_id = 1})
//                 .build();
#pragma once

#include <string_view>

#include "model/model.h"
#include "model/raw.h"

namespace firelane {

class TraceBuilder {
 public:
  struct OpArgs {
    double start_us = 0;
    double end_us = 0;
    int64_t thread = 1;
    int64_t external_id = kNoNumber;
    int64_t sequence_number = kNoNumber;
    int64_t forward_thread = kNoNumber;
    int64_t flops = kNoNumber;
    std::string_view dims = {};   // JSON text
    std::string_view types = {};  // JSON text
    std::string_view strides = {};
    std::string_view concrete = {};
    std::string_view stack = {};
    std::string_view overload = {};
    std::string_view tensors = {};  // JSON text
  };
  struct TimedStepArgs {
    double start_us = 0;
    double end_us = 0;
    StepDisturbance disturbance = StepDisturbance::kNone;
    double ran_us = -1;     // on a core; below 0: not known
    double waited_us = -1;  // for a core
  };
  struct SliceArgs {
    double start_us = 0;
    double end_us = 0;
    int64_t thread = 1;
  };
  struct CallArgs {
    double start_us = 0;
    double end_us = 0;
    int64_t thread = 1;
    int64_t correlation = kNoNumber;
    int64_t external_id = kNoNumber;
    bool driver = false;
  };
  struct KernelArgs {
    double start_us = 0;
    double end_us = 0;
    int32_t device = 0;
    int64_t stream = 7;
    int64_t correlation = kNoNumber;
    int64_t external_id = kNoNumber;
    int32_t grid = -1;
    int32_t block = -1;
    int32_t registers = -1;
    int64_t shared_memory_bytes = kNoNumber;
    float occupancy_percent = -1;
    float warps_per_sm = -1;
    int64_t graph_id = kNoNumber;
  };
  struct CopyArgs {
    double start_us = 0;
    double end_us = 0;
    int32_t device = 0;
    int64_t stream = 7;
    int64_t correlation = kNoNumber;
    int64_t external_id = kNoNumber;
    int64_t bytes = kNoNumber;
    float bandwidth_gb_s = -1;
    int64_t graph_id = kNoNumber;
    int64_t source_device = kNoNumber;
    int64_t target_device = kNoNumber;
  };
  struct MemoryArgs {
    double at_us = 0;
    int64_t bytes = 0;  // negative = freed
    int64_t thread = 1;
    int32_t device_type = 0;  // 0 CPU, 1 CUDA
    int32_t device = -1;
    uint64_t address = 0x1000;
    int64_t total_allocated = kNoNumber;
    int64_t total_reserved = kNoNumber;
  };

  // A piece of a caching allocator's segment.
  struct BlockArgs {
    int64_t bytes = 0;
    AllocatorBlockState state = AllocatorBlockState::kFree;
  };
  struct SegmentArgs {
    double at_us = 0;
    uint64_t address = 0;
    std::vector<BlockArgs> blocks;  // filling it
    int64_t stream = 0;
    std::string_view pool = "common";
    bool is_expandable = false;
    int32_t device = 0;
  };
  struct AllocatorArgs {
    double at_us = 0;
    uint64_t address = 0;
    int64_t bytes = 0;
    int64_t stream = 0;
    std::string_view pool = "common";
    int32_t device = 0;
  };

  struct SampleArgs {
    double at_us = 0;
    double weight_us = 0;
    bool on_cpu = true;
    int64_t thread = 1;
    bool knows_cpu = true;
  };

  TraceBuilder();

  TraceBuilder& op(std::string_view name, const OpArgs& args);
  TraceBuilder& annotation(std::string_view name, const OpArgs& args);
  TraceBuilder& step(int64_t number, const SliceArgs& args);  // ProfilerStep#number
  TraceBuilder& timed_step(int64_t number, const TimedStepArgs& args);
  TraceBuilder& python(std::string_view name, const SliceArgs& args);
  TraceBuilder& call(std::string_view name, const CallArgs& args);
  TraceBuilder& overhead(std::string_view name, const SliceArgs& args);
  TraceBuilder& kernel(std::string_view name, const KernelArgs& args);
  TraceBuilder& copy(std::string_view name, const CopyArgs& args);
  TraceBuilder& set(std::string_view name, const CopyArgs& args);
  TraceBuilder& device_annotation(std::string_view name, const KernelArgs& args);
  TraceBuilder& memory(const MemoryArgs& args);
  TraceBuilder& instant(std::string_view name, double at_us, int64_t thread = 1);
  TraceBuilder& counter(std::string_view name, double at_us, double value);
  TraceBuilder& gpu_counter(int64_t device, std::string_view name, double at_us, double value);
  TraceBuilder& sample(std::string_view stack, const SampleArgs& args);  // innermost frame first, joined by ;
  TraceBuilder& flow(std::string_view name, int64_t id, SliceArgs from_at, SliceArgs to_at);
  TraceBuilder& device(const DeviceProperties& properties);
  TraceBuilder& metadata(std::string_view key, std::string_view json);
  TraceBuilder& device_window(double start_us, double end_us);  // when devices were recorded

  TraceBuilder& allocator_state(const SegmentArgs& args);  // of CUDA, as all that an allocator says
  TraceBuilder& allocator_event(AllocatorEventKind kind, const AllocatorArgs& args);

  Model build();  // REQUIRES: called once

 private:
  RawHostSlice& add_host(std::string_view name, std::string_view category, HostKind kind, const SliceArgs& at);
  RawDeviceSlice& add_device(std::string_view name, std::string_view category, DeviceKind kind, const KernelArgs& at);
  LaneId thread_lane(int64_t thread);
  StringId intern(std::string_view text) { return raw_.pools[0].strings.intern(text); }

  RawTrace raw_;
};

}  // namespace firelane
