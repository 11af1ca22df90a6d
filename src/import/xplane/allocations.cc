#include "import/xplane/allocations.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace firelane::importer::xplane {

MemoryMark memory_mark(std::string_view event_name) {
  if (event_name == "MemoryAllocation") return MemoryMark::kAllocation;
  return event_name == "MemoryDeallocation" ? MemoryMark::kDeallocation : MemoryMark::kNone;
}

int32_t allocator_device(std::string_view allocator) {
  constexpr std::string_view kPrefix = "GPU_";
  if (!allocator.starts_with(kPrefix)) return -1;
  int32_t device = -1;
  std::from_chars(allocator.data() + kPrefix.size(), allocator.data() + allocator.size(), device);
  return device >= 0 && device < 65536 ? device : -1;
}

void Allocations::finish(RawPart& part) {
  // Threads allocate side by side, and their lines come one after another.
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const RawMemory& a, const RawMemory& b) { return a.time_ns < b.time_ns; });
  using Device = std::pair<int32_t, int32_t>;
  std::map<Device, int64_t> in_use;
  std::map<std::pair<Device, uint64_t>, int64_t> sizes;
  for (RawMemory& row : rows_) {
    const Device device{row.device_type, row.device};
    const auto before = in_use.find(device);
    if (row.kind == MemoryEventKind::kAlloc) {
      sizes[{device, row.address}] = row.bytes;
    } else if (const auto found = sizes.find({device, row.address}); found != sizes.end()) {
      if (row.bytes == kNoNumber) row.bytes = found->second;
      sizes.erase(found);
    }
    if (row.bytes == kNoNumber && before != in_use.end() && row.total_allocated_bytes != kNoNumber) {
      row.bytes = std::max<int64_t>(0, before->second - row.total_allocated_bytes);
    }
    if (row.total_allocated_bytes != kNoNumber) in_use[device] = row.total_allocated_bytes;
    if (row.bytes == kNoNumber || row.bytes < 0) {
      ++part.losses[Stat::kMemoryEventIncomplete];
      continue;
    }
    if (row.kind == MemoryEventKind::kFree) row.bytes = -row.bytes;
    part.memory_events.push_back(row);
  }
  rows_.clear();
}

}  // namespace firelane::importer::xplane
