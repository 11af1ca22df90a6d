#include "import/dumps/snapshot_start.h"

#include <algorithm>

namespace firelane::importer {

namespace {

constexpr uint64_t kLeastBlock = 512;  // the allocator rounds up to it

uint64_t rounded(uint64_t bytes) { return (bytes + kLeastBlock - 1) / kLeastBlock * kLeastBlock; }

}  // namespace

void AllocatorState::undo_alloc(uint64_t address) { blocks.erase(address); }

void AllocatorState::undo_free(uint64_t address, uint64_t bytes) {
  const auto found = blocks.find(address);
  if (found != blocks.end() && found->second.state == AllocatorBlockState::kWaiting) {
    found->second.state = AllocatorBlockState::kAllocated;
  } else {
    blocks.try_emplace(address, HeldBlock{rounded(bytes), AllocatorBlockState::kAllocated});
  }
}

void AllocatorState::undo_free_completed(uint64_t address, uint64_t bytes) {
  blocks.try_emplace(address, HeldBlock{rounded(bytes), AllocatorBlockState::kWaiting});
}

// Mapped pieces of expandable segments have grown together: the piece is cut out.
void AllocatorState::undo_segment_more(uint64_t address, uint64_t bytes) {
  auto found = segments.upper_bound(address);
  if (found == segments.begin()) return;
  --found;
  const uint64_t begin = found->first;
  const HeldSegment whole = found->second;
  if (address - begin >= whole.bytes) return;
  const uint64_t end = begin + whole.bytes;
  const uint64_t cut_end = std::min(end, address + bytes);
  segments.erase(found);
  const auto keep = [&](uint64_t from, uint64_t to) {
    if (from >= to) return;
    HeldSegment rest = whole;
    rest.bytes = to - from;
    segments[from] = rest;
  };
  keep(begin, address);
  keep(cut_end, end);
}

void AllocatorState::undo_segment_less(uint64_t address, uint64_t bytes, const HeldSegment& like) {
  HeldSegment segment = like;
  segment.bytes = bytes;
  if (segment.is_expandable) {
    const auto after = segments.find(address + bytes);
    if (after != segments.end() && after->second.is_expandable) {
      segment.bytes += after->second.bytes;
      segments.erase(after);
    }
    auto before = segments.lower_bound(address);
    if (before != segments.begin()) {
      --before;
      if (before->second.is_expandable && before->first + before->second.bytes == address) {
        before->second.bytes += segment.bytes;
        return;
      }
    }
  }
  segments.try_emplace(address, segment);
}

}  // namespace firelane::importer
