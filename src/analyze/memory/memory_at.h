// Memory over time and at one moment, from a MemoryReport: the curve reduced to bins, what is alive, where it lies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/memory/memory.h"
#include "analyze/steps/phases.h"
#include "model/model.h"

namespace firelane::analyze {

// "cpu", "cuda:0": as torch writes a device.
std::string device_label(const DeviceMemory& device);

// The highest moment of each bin. `categories` are those of that moment, so that they add up to `allocated_bytes`; what
// no allocation of the trace explains is "before recording", and may be negative when frees were lost.
struct MemoryBins {
  int64_t from_ns = 0;
  int64_t bin_ns = 1;
  std::vector<int64_t> allocated_bytes;
  std::vector<int64_t> reserved_bytes;  // kNoNumber where the trace does not tell
  std::array<std::vector<int64_t>, kMemoryCategoryCount> categories;
};
// REQUIRES: from_ns < to_ns, bins > 0.
MemoryBins memory_bins(const DeviceMemory& device, int64_t from_ns, int64_t to_ns, size_t bins);

struct MemoryMoment {
  MemoryPoint point;                      // the last change at or before it
  std::vector<const MemoryBlock*> alive;  // largest first
  std::vector<MemoryOwner> owners;        // the same summed by op, module and category; largest first
  int64_t before_recording_bytes = 0;     // allocated, but by no allocation of the trace
};
MemoryMoment memory_at(const Model& model, const DeviceMemory& device, int64_t time_ns);

// Where blocks lie: as the allocator's recorded state says (analyze/memory/allocator.h). Where a trace has none
// segments are inferred: addresses in units of 2 MiB, the caching allocator's own, that a block of the trace ever
// touched; neighbours are one. What was allocated before recording looks free then.
struct MemorySegment {
  struct Piece {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    const MemoryBlock* block = nullptr;  // nullptr: free, or allocated before recording
    AllocatorBlockState state = AllocatorBlockState::kFree;
  };
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::vector<Piece> pieces;  // covering it, in order of address
};
bool has_recorded_segments(const Model& model, const DeviceMemory& device);
std::vector<MemorySegment> memory_segments(const Model& model, const DeviceMemory& device, int64_t time_ns);

}  // namespace firelane::analyze
