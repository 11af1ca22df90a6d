#include "analyze/memory/allocator_replay.h"

#include <algorithm>

namespace firelane::analyze {
namespace {

// torch's c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize and kSmallSize.
constexpr uint64_t kLeastBlock = 512;
constexpr uint64_t kHighest = uint64_t{1} << 62;  // addresses beyond are damage
constexpr uint64_t kSmall = uint64_t{1} << 20;

uint64_t block_size(uint64_t asked, uint64_t room, bool is_expandable) {
  const uint64_t rest = room - asked;
  const bool is_split = asked <= kSmall || is_expandable ? rest >= kLeastBlock : rest > kSmall;
  return is_split ? asked : room;
}

int64_t number(uint64_t bytes) { return static_cast<int64_t>(bytes); }

}  // namespace

void AllocatorReplay::clear() {
  const int64_t misplaced = misplaced_;
  *this = {};
  misplaced_ = misplaced;
}

AllocatorReplay::Segments::iterator AllocatorReplay::segment_of(uint64_t address) {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return segments_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.bytes ? found : segments_.end();
}

AllocatorReplay::Gaps::iterator AllocatorReplay::gap_of(uint64_t address) {
  const auto after = gaps_.upper_bound(address);
  if (after == gaps_.begin()) return gaps_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second ? found : gaps_.end();
}

void AllocatorReplay::add_gap(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return;
  gaps_[address] = bytes;
  ++gap_sizes_[bytes];
}

void AllocatorReplay::erase_gap(Gaps::iterator gap) {
  const auto size = gap_sizes_.find(gap->second);
  if (--size->second == 0) gap_sizes_.erase(size);
  gaps_.erase(gap);
}

bool AllocatorReplay::take(uint64_t address, uint64_t bytes) {
  const auto gap = gap_of(address);
  if (gap == gaps_.end()) return false;
  const uint64_t before = address - gap->first;
  if (bytes > gap->second - before) return false;
  const uint64_t begin = gap->first;
  const uint64_t after = gap->second - before - bytes;
  erase_gap(gap);
  add_gap(begin, before);
  add_gap(address + bytes, after);
  return true;
}

void AllocatorReplay::give(uint64_t address, uint64_t bytes) {
  const auto segment = segment_of(address);
  if (segment == segments_.end()) return;
  const uint64_t segment_end = segment->first + segment->second.bytes;
  if (const auto next = gaps_.find(address + bytes); next != gaps_.end() && address + bytes < segment_end) {
    bytes += next->second;
    erase_gap(next);
  }
  if (address > segment->first) {
    if (const auto before = gap_of(address - 1); before != gaps_.end()) {
      bytes += before->second;
      address = before->first;
      erase_gap(before);
    }
  }
  add_gap(address, bytes);
}

void AllocatorReplay::add_segment(uint64_t address, uint64_t bytes, int64_t stream, StringId pool, bool is_expandable) {
  if (bytes == 0) return;
  const auto next = segments_.lower_bound(address);
  const bool overlaps = address >= kHighest || bytes >= kHighest - address || segment_of(address) != segments_.end() ||
                        (next != segments_.end() && next->first - address < bytes);
  if (overlaps) {
    ++misplaced_;
    return;
  }
  reserved_ += number(bytes);
  Segment segment{.bytes = bytes, .stream = stream, .pool = pool, .is_expandable = is_expandable};
  uint64_t begin = address;
  // Pieces of an expandable segment that touch are one.
  const auto joins = [&](const Segment& other) {
    return is_expandable && other.is_expandable && other.stream == stream && other.pool == pool;
  };
  if (next != segments_.end() && next->first == address + bytes && joins(next->second)) {
    segment.bytes += next->second.bytes;
    segments_.erase(next);
  }
  if (address > 0) {
    if (const auto before = segment_of(address - 1); before != segments_.end() && joins(before->second)) {
      begin = before->first;
      segment.bytes += before->second.bytes;
      segments_.erase(before);
    }
  }
  segments_[begin] = segment;
  give(address, bytes);
}

void AllocatorReplay::place(uint64_t address, uint64_t bytes, AllocatorBlockState state) {
  if (state == AllocatorBlockState::kFree || bytes == 0) return;
  if (!take(address, bytes)) {
    ++misplaced_;
    return;
  }
  const bool is_waiting = state == AllocatorBlockState::kWaiting;
  blocks_[address] = {.bytes = bytes, .is_waiting = is_waiting};
  (is_waiting ? waiting_ : allocated_) += number(bytes);
}

void AllocatorReplay::allocate(uint64_t address, uint64_t asked_bytes) {
  const auto gap = gap_of(address);
  const auto segment = segment_of(address);
  const uint64_t room = gap == gaps_.end() ? 0 : gap->first + gap->second - address;
  if (asked_bytes == 0 || asked_bytes > room || segment == segments_.end()) {
    ++misplaced_;
    return;
  }
  // Memory snapshots say what the program asked for, before the allocator rounds it up.
  const uint64_t rounded = std::min(room, (asked_bytes + kLeastBlock - 1) / kLeastBlock * kLeastBlock);
  const uint64_t bytes = block_size(rounded, room, segment->second.is_expandable);
  take(address, bytes);
  blocks_[address] = {.bytes = bytes};
  allocated_ += number(bytes);
}

void AllocatorReplay::ask_free(uint64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || block->second.is_waiting) {
    ++misplaced_;
    return;
  }
  block->second.is_waiting = true;
  allocated_ -= number(block->second.bytes);
  waiting_ += number(block->second.bytes);
}

void AllocatorReplay::complete_free(uint64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) {
    ++misplaced_;
    return;
  }
  const uint64_t bytes = block->second.bytes;
  (block->second.is_waiting ? waiting_ : allocated_) -= number(bytes);
  blocks_.erase(block);
  give(address, bytes);
}

void AllocatorReplay::remove_segment(uint64_t address, uint64_t bytes) {
  const auto found = segment_of(address);
  if (found == segments_.end() || bytes == 0 || bytes > found->first + found->second.bytes - address ||
      !take(address, bytes)) {
    ++misplaced_;
    return;
  }
  const Segment segment = found->second;
  const uint64_t begin = found->first;
  segments_.erase(found);
  const auto keep = [&](uint64_t at, uint64_t size) {
    if (size == 0) return;
    Segment& part = segments_[at] = segment;
    part.bytes = size;
  };
  keep(begin, address - begin);
  keep(address + bytes, begin + segment.bytes - address - bytes);
  reserved_ -= number(bytes);
}

AllocatorMoment AllocatorReplay::moment(int64_t time_ns) const {
  return {.time_ns = time_ns,
          .reserved_bytes = reserved_,
          .allocated_bytes = allocated_,
          .waiting_bytes = waiting_,
          .largest_free_bytes = gap_sizes_.empty() ? 0 : number(gap_sizes_.rbegin()->first),
          .segments = static_cast<int64_t>(segments_.size())};
}

std::vector<AllocatorSegment> AllocatorReplay::segments() const {
  std::vector<AllocatorSegment> out;
  auto block = blocks_.begin();
  auto gap = gaps_.begin();
  for (const auto& [address, segment] : segments_) {
    AllocatorSegment& to = out.emplace_back(AllocatorSegment{.address = address,
                                                             .bytes = segment.bytes,
                                                             .stream = segment.stream,
                                                             .pool = segment.pool,
                                                             .is_expandable = segment.is_expandable,
                                                             .pieces = {}});
    const uint64_t end = address + segment.bytes;
    while (true) {
      const bool has_block = block != blocks_.end() && block->first < end;
      const bool has_gap = gap != gaps_.end() && gap->first < end;
      if (!has_block && !has_gap) break;
      if (has_block && (!has_gap || block->first < gap->first)) {
        const auto state = block->second.is_waiting ? AllocatorBlockState::kWaiting : AllocatorBlockState::kAllocated;
        to.pieces.push_back({.address = block->first, .bytes = block->second.bytes, .state = state});
        ++block;
      } else {
        to.pieces.push_back({.address = gap->first, .bytes = gap->second});
        ++gap;
      }
    }
  }
  return out;
}

}  // namespace firelane::analyze
