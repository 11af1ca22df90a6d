#include "import/lane/allocator_rows.h"

#include <simdjson.h>

#include <cstdlib>
#include <string>

namespace firelane::importer {
namespace {

namespace dom = simdjson::dom;

constexpr uint64_t kMostBytes = uint64_t{1} << 50;  // of a segment; more is damage

AllocatorEventKind kind_of(const format::EventRecord& r) {
  if (r.action == format::MemoryAction::kFreeCompleted) return AllocatorEventKind::kFreeCompleted;
  const bool is_mapped = r.memory.place && r.memory.place->is_mapped;
  if (r.memory.bytes < 0) return is_mapped ? AllocatorEventKind::kSegmentUnmap : AllocatorEventKind::kSegmentFree;
  return is_mapped ? AllocatorEventKind::kSegmentMap : AllocatorEventKind::kSegmentAlloc;
}

bool is_place(uint64_t address, uint64_t bytes) { return bytes < kMostBytes && address < UINT64_MAX - kMostBytes; }

}  // namespace

StringId AllocatorRows::pool_name(uint64_t pool) {
  if (pool == 0) return pool_.strings.intern("common");
  const uint64_t capture = pool >> 32;
  return pool_.strings.intern(capture != 0 ? "graph " + std::to_string(capture) : "pool " + std::to_string(pool));
}

void AllocatorRows::add_event(const format::EventRecord& r, int64_t time, LaneId lane) {
  const format::MemoryFields& m = r.memory;
  part_.allocator_events.push_back({.time_ns = time,
                                    .address = m.address,
                                    .bytes = m.bytes == INT64_MIN ? INT64_MAX : std::abs(m.bytes),
                                    .stream = m.place ? static_cast<int64_t>(m.place->stream) : kNoNumber,
                                    .lane = lane,
                                    .kind = kind_of(r),
                                    .device_type = m.device_type,
                                    .device = m.device,
                                    .pool = m.place ? pool_name(m.place->pool) : StringId{}});
  ++part_.event_count;
}

bool AllocatorRows::add_segment(const format::SegmentNote& note) {
  const format::SegmentFields& s = note.segment;
  if (!is_place(s.address, s.bytes)) return false;
  const auto time = static_cast<int64_t>(note.ticks);
  part_.allocator_segments.push_back({.time_ns = time,
                                      .address = s.address,
                                      .bytes = static_cast<int64_t>(s.bytes),
                                      .stream = static_cast<int64_t>(s.stream),
                                      .device_type = s.device_type,
                                      .device = s.device,
                                      .pool = pool_name(s.pool),
                                      .is_expandable = s.is_expandable});
  format::SegmentBlocks blocks(note.blocks);
  format::SegmentBlock block;
  uint64_t filled = 0;
  while (blocks.next(block)) {
    if (block.bytes > s.bytes - filled) return false;
    part_.allocator_blocks.push_back({.time_ns = time,
                                      .address = s.address + filled,
                                      .bytes = static_cast<int64_t>(block.bytes),
                                      .device_type = s.device_type,
                                      .device = s.device,
                                      .state = static_cast<AllocatorBlockState>(block.state)});
    filled += block.bytes;
  }
  return filled == s.bytes;
}

void AllocatorRows::add_old_snapshot(std::string_view json, int64_t time) {
  constexpr int32_t kCuda = 1;
  dom::parser parser;
  dom::array segments;
  if (parser.parse(json.data(), json.size()).get(segments) != simdjson::SUCCESS) return;
  for (const dom::element segment : segments) {
    int64_t device = 0;
    uint64_t address = 0, bytes = 0, stream = 0;
    dom::array blocks;
    const bool is_whole =
        segment.at(0).get(device) == simdjson::SUCCESS && segment.at(1).get(address) == simdjson::SUCCESS &&
        segment.at(2).get(bytes) == simdjson::SUCCESS && segment.at(3).get(stream) == simdjson::SUCCESS &&
        segment.at(4).get(blocks) == simdjson::SUCCESS;
    if (!is_whole || device < 0 || device > INT8_MAX || !is_place(address, bytes)) return;
    part_.allocator_segments.push_back({.time_ns = time,
                                        .address = address,
                                        .bytes = static_cast<int64_t>(bytes),
                                        .stream = static_cast<int64_t>(stream),
                                        .device_type = kCuda,
                                        .device = static_cast<int32_t>(device)});
    uint64_t filled = 0;
    for (const dom::element block : blocks) {
      uint64_t size = 0, is_allocated = 0;
      const bool is_block =
          block.at(0).get(size) == simdjson::SUCCESS && block.at(2).get(is_allocated) == simdjson::SUCCESS;
      if (!is_block || size > bytes - filled) return;
      const auto state = is_allocated != 0 ? AllocatorBlockState::kAllocated : AllocatorBlockState::kFree;
      part_.allocator_blocks.push_back({.time_ns = time,
                                        .address = address + filled,
                                        .bytes = static_cast<int64_t>(size),
                                        .device_type = kCuda,
                                        .device = static_cast<int32_t>(device),
                                        .state = state});
      filled += size;
    }
  }
}

}  // namespace firelane::importer
