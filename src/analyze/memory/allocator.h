// What torch's caching allocator holds at any time of the trace: reserved, allocated, free, and how free memory is cut
// up.
//
// The recorder writes the allocator's state when it begins, and every change of it afterwards (allocator_segments,
// allocator_blocks, allocator_events, memory_events). Replayed one after another these give the exact place of every
// block, what was allocated before the recording included.
//
// An allocation says what was asked for, not how large its block became: the allocator takes the whole free block when
// the rest would be below 512 bytes, or, for blocks above 1 MiB outside of expandable segments, not above 1 MiB.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct AllocatorMoment {
  int64_t time_ns = 0;
  int64_t reserved_bytes = 0;   // in segments
  int64_t allocated_bytes = 0;  // in blocks, as large as the allocator made them
  int64_t waiting_bytes = 0;    // freed, but streams may still use it
  int64_t largest_free_bytes = 0;
  int64_t segments = 0;

  int64_t free_bytes() const { return reserved_bytes - allocated_bytes - waiting_bytes; }
  // Free, but not in one piece.
  int64_t scattered_bytes() const { return free_bytes() - largest_free_bytes; }
};

// The segments of one stream and pool, at one moment. Only these can serve an allocation there.
struct AllocatorShare {
  int64_t stream = kNoNumber;
  StringId pool = kNoString;
  AllocatorMoment at;
};

// An allocation that failed, and what there was.
struct AllocatorFailure {
  int64_t asked_bytes = 0;
  AllocatorMoment at;
};

struct DeviceAllocator {
  int32_t device_type = 1;
  int32_t device = 0;
  std::vector<AllocatorMoment> curve;  // the state that was written first, then after every change; never empty
  size_t most_allocated = 0;           // rows of the curve: the first of the most
  size_t most_reserved = 0;
  size_t most_scattered = 0;
  std::vector<AllocatorShare> shares;  // when most was allocated; most reserved first
  std::vector<AllocatorFailure> failures;
  int64_t misplaced = 0;  // events that do not fit to what was known: others are missing
};

// Devices whose allocator's state the trace has, in order.
std::vector<DeviceAllocator> allocator_report(const Model& model);

// The state at one moment: every segment with all its pieces, in order of address.
struct AllocatorPiece {
  uint64_t address = 0;
  uint64_t bytes = 0;
  AllocatorBlockState state = AllocatorBlockState::kFree;
};
struct AllocatorSegment {
  uint64_t address = 0;
  uint64_t bytes = 0;
  int64_t stream = kNoNumber;
  StringId pool = kNoString;
  bool is_expandable = false;
  std::vector<AllocatorPiece> pieces;  // covering it
};
// Before the first known state: that state. Empty when the trace has none of the device.
std::vector<AllocatorSegment> allocator_at(const Model& model, int32_t device_type, int32_t device, int64_t time_ns);

}  // namespace firelane::analyze
