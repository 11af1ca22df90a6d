// Where device memory (and the CPU's) went: the curve, the peak and what was alive at it, growth, waste, copies.
//
// Everything comes from the allocator's events (profile_memory=True). An allocation is named by the op that was open on
// its thread, the module around that and the phase; what it is for follows from these and from when it was freed:
//
//   inputs           allocated in data or transfer
//   optimizer state  allocated in the optimizer, not freed there
//   gradients        allocated in the backward, outlives it (freed in the optimizer or by zero_grad, or not at all)
//   activations      allocated in the forward, outlives the outermost op that made it
//   workspace        allocated and freed inside one matmul, convolution or attention; made by a matrix product after
//                    its output and never freed (cuBLAS's, which torch keeps)
//   temporaries      freed inside the outermost op, the backward or the optimizer that allocated it
//   parameters       allocated before the first step (without steps: before the first of several optimizer steps);
//                    never freed
//   before recording there when the trace starts: parameters, optimizer state, buffers; which, the trace cannot tell
//   unknown          outside of every phase
//
// In a memory snapshot, which has no ops, the phase comes from the call stack of the allocation.
//
// At the peak the categories add up to the allocator's own total. Parameters, gradients and optimizer state are
// inferred; `uncertain_bytes` says how much of the peak rests on that.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/memory/allocator.h"
#include "analyze/steps/phases.h"
#include "model/model.h"

namespace firelane::analyze {

enum class MemoryCategory : uint8_t {
  kParameters,
  kGradients,
  kOptimizerState,
  kActivations,
  kInputs,
  kTemporaries,
  kWorkspace,
  kBeforeRecording,
  kUnknown,
};
inline constexpr size_t kMemoryCategoryCount = 9;
std::string_view name_of(MemoryCategory category);

struct MemoryOwner {
  std::string op;      // outermost op; "" none
  std::string module;  // innermost module; "" none
  std::string place;   // line of the user's code: "train.py(41): step", where allocations have a stack; "" none
  MemoryCategory category = MemoryCategory::kUnknown;
  int64_t bytes = 0;
  int64_t allocations = 0;
};

struct MemoryPoint {
  int64_t time_ns = 0;
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = kNoNumber;
  // The event that led here: what it added or (negative) freed, and what that memory was for.
  int64_t change_bytes = 0;
  MemoryCategory category = MemoryCategory::kUnknown;
};

// One allocation, from its event to the one that freed it.
struct MemoryBlock {
  int64_t start_ns = 0;
  int64_t end_ns = INT64_MAX;  // INT64_MAX: not freed in the trace
  uint64_t address = 0;
  int64_t bytes = 0;
  MemoryCategory category = MemoryCategory::kUnknown;
  Row event = kNoRow;   // memory_events
  Row op = kNoRow;      // host slice: outermost op
  Row module = kNoRow;  // host slice: innermost module call
};

// By whom it was allocated: bytes and allocations are not set.
MemoryOwner owner_of(const Model& model, const MemoryBlock& block);

// An op that needed much more for a moment than before and after it.
struct MemorySpike {
  Row op = kNoRow;    // host slice, outermost op: the worst call of that name
  int64_t times = 1;  // calls of that name that did so
  int64_t time_ns = 0;
  int64_t extra_bytes = 0;  // above the larger of before and after
};

struct StepMemory {
  int64_t step = kNoNumber;
  int64_t peak_bytes = 0;
  int64_t end_bytes = 0;  // allocated when the step ends
  int64_t reserved_bytes = kNoNumber;
  int64_t allocator_calls = 0;  // cudaMalloc, cudaFree, ... in the step: the cache did not serve
  int64_t allocator_ns = 0;
};

struct DeviceMemory {
  int32_t device_type = 0;  // c10::DeviceType
  int32_t device = -1;
  std::string name;  // "NVIDIA H200", "CPU"
  int64_t capacity_bytes = kNoNumber;
  int64_t allocations = 0;
  int64_t frees = 0;
  int64_t out_of_memory = 0;  // allocations that failed
  int64_t first_out_of_memory_ns = kNoNumber;
  std::vector<MemoryPoint> curve;   // all changes
  std::vector<MemoryBlock> blocks;  // every allocation of the trace, in order of time
  MemoryPoint peak;
  int64_t peak_reserved_bytes = kNoNumber;
  int64_t start_bytes = 0;
  int64_t end_bytes = 0;
  std::array<int64_t, kMemoryCategoryCount> at_peak{};  // adds up to peak.allocated_bytes
  int64_t uncertain_bytes = 0;
  std::vector<MemoryOwner> owners;  // of what is alive at the peak, largest first
  std::vector<MemorySpike> spikes;  // largest first
  std::vector<StepMemory> steps;
  int64_t growth_per_step_bytes = 0;       // of end_bytes, the least of all steps after the first; 0: it does not grow
  std::vector<MemoryOwner> growth_owners;  // allocated in every step after the first and never freed; bytes per step

  // Reserved from the driver but in no tensor, at the peak; kNoNumber when the trace does not tell.
  int64_t cached_bytes() const {
    return peak.reserved_bytes == kNoNumber ? kNoNumber : peak.reserved_bytes - peak.allocated_bytes;
  }
};

struct MemoryReport {
  std::vector<DeviceMemory> devices;        // GPUs first
  int64_t frees_before_recording = 0;       // of memory whose allocation is not in the trace
  std::vector<DeviceAllocator> allocators;  // of the devices whose allocator's state is in the trace
  // For each memory event; a free has its allocation's, or "before recording" when that is not in the trace.
  std::vector<MemoryCategory> category;
};

MemoryReport memory_report(const Model& model);

// cudaMalloc, cudaFree and their like: calls into the driver that torch's cache is there to avoid.
bool is_allocator_call(std::string_view name);

}  // namespace firelane::analyze
