// Allocations of device memory, which XLA's allocators trace as instants of the host: "MemoryAllocation" with its size,
// "MemoryDeallocation", on TPUs without one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/raw.h"

namespace firelane::importer::xplane {

enum class MemoryMark : uint8_t { kNone, kAllocation, kDeallocation };
MemoryMark memory_mark(std::string_view event_name);

// n of "GPU_0_bfc"; -1 for allocators of the host.
int32_t allocator_device(std::string_view allocator);

class Allocations {
 public:
  // Sizes are as the marks have them, not negative; kNoNumber: none.
  void add(const RawMemory& row) { rows_.push_back(row); }

  // Puts them into the part. What was freed has the size that it was allocated with, else what the allocator has in use
  // less than before; where neither is known it is counted as incomplete.
  void finish(RawPart& part);

 private:
  std::vector<RawMemory> rows_;
};

}  // namespace firelane::importer::xplane
