// What a caching allocator held when a memory snapshot's history begins.
//
// A snapshot says what the allocator holds at its end, and what it did before. Undone one by one, the last first, the
// events lead back to the state at the start, which is what the model, and every analysis of it, begins with.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/model.h"

namespace firelane::importer {

struct HeldSegment {
  uint64_t bytes = 0;
  int64_t stream = kNoNumber;
  StringId pool = kNoString;
  bool is_expandable = false;
};
struct HeldBlock {
  uint64_t bytes = 0;
  AllocatorBlockState state = AllocatorBlockState::kAllocated;  // or kWaiting
};

struct AllocatorState {
  std::map<uint64_t, HeldSegment> segments;  // by address
  std::map<uint64_t, HeldBlock> blocks;      // by address: what is not free

  // Undo, REQUIRES: in the opposite order of what happened.
  void undo_alloc(uint64_t address);
  void undo_free(uint64_t address, uint64_t bytes);
  void undo_free_completed(uint64_t address, uint64_t bytes);
  void undo_segment_more(uint64_t address, uint64_t bytes);
  void undo_segment_less(uint64_t address, uint64_t bytes, const HeldSegment& like);
};

}  // namespace firelane::importer
