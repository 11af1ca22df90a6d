#include "analyze/memory/allocator.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyze/memory/allocator_replay.h"
#include "base/check.h"

namespace firelane::analyze {
namespace {

using DeviceKey = std::pair<int32_t, int32_t>;

// What can happen, in the order that counts where two things have the same time.
enum class Turn : uint8_t { kState, kFree, kFreeCompleted, kSegmentLess, kSegmentMore, kAlloc, kOutOfMemory };

struct Change {
  int64_t time_ns = 0;
  Turn turn{};
  Row row = kNoRow;  // of memory_events or allocator_events; of kState: the first of allocator_segments
};

Turn turn_of(AllocatorEventKind kind) {
  switch (kind) {
    case AllocatorEventKind::kFreeCompleted: return Turn::kFreeCompleted;
    case AllocatorEventKind::kSegmentFree:
    case AllocatorEventKind::kSegmentUnmap: return Turn::kSegmentLess;
    case AllocatorEventKind::kSegmentAlloc:
    case AllocatorEventKind::kSegmentMap: break;
  }
  return Turn::kSegmentMore;
}

Turn turn_of(MemoryEventKind kind) {
  if (kind == MemoryEventKind::kOutOfMemory) return Turn::kOutOfMemory;
  return kind == MemoryEventKind::kFree ? Turn::kFree : Turn::kAlloc;
}

std::vector<Change> changes_of(const Model& model, DeviceKey device) {
  std::vector<Change> out;
  const auto is_ours = [&](const auto& table, Row row) {
    return DeviceKey{table.device_type[row], table.device[row]} == device;
  };
  const AllocatorSegments& segments = model.allocator_segments;
  for (Row row = 0; row < segments.size(); ++row) {
    if (!is_ours(segments, row)) continue;
    const bool is_same_state = !out.empty() && out.back().time_ns == segments.time_ns[row];
    if (!is_same_state) out.push_back({segments.time_ns[row], Turn::kState, row});
  }
  if (out.empty()) return out;
  const int64_t first_ns = out.front().time_ns;
  const auto add = [&](const auto& events) {
    for (Row row = 0; row < events.size(); ++row) {
      if (is_ours(events, row) && events.time_ns[row] >= first_ns)
        out.push_back({events.time_ns[row], turn_of(events.kind[row]), row});
    }
  };
  add(model.memory_events);
  add(model.allocator_events);
  std::stable_sort(out.begin(), out.end(), [](const Change& a, const Change& b) {
    return std::tie(a.time_ns, a.turn) < std::tie(b.time_ns, b.turn);
  });
  return out;
}

void set_state(const Model& model, DeviceKey device, int64_t time_ns, AllocatorReplay& replay) {
  replay.clear();
  const auto rows_at = [&](const auto& table) {
    const auto range = std::equal_range(table.time_ns.begin(), table.time_ns.end(), time_ns);
    std::vector<Row> rows;
    for (auto at = range.first; at != range.second; ++at) {
      const auto row = static_cast<Row>(at - table.time_ns.begin());
      if (DeviceKey{table.device_type[row], table.device[row]} == device) rows.push_back(row);
    }
    return rows;
  };
  const AllocatorSegments& s = model.allocator_segments;
  for (const Row row : rows_at(s)) {
    replay.add_segment(s.address[row], static_cast<uint64_t>(s.bytes[row]), s.stream[row], s.pool[row],
                       s.is_expandable[row] != 0);
  }
  const AllocatorBlocks& b = model.allocator_blocks;
  for (const Row row : rows_at(b)) replay.place(b.address[row], static_cast<uint64_t>(b.bytes[row]), b.state[row]);
}

void apply(const Model& model, DeviceKey device, const Change& change, AllocatorReplay& replay) {
  const MemoryEvents& m = model.memory_events;
  const AllocatorEvents& a = model.allocator_events;
  const auto size = [](int64_t bytes) { return static_cast<uint64_t>(std::max<int64_t>(0, bytes)); };
  switch (change.turn) {
    case Turn::kState: set_state(model, device, change.time_ns, replay); break;
    case Turn::kFree: replay.ask_free(m.address[change.row]); break;
    case Turn::kFreeCompleted: replay.complete_free(a.address[change.row]); break;
    case Turn::kSegmentLess: replay.remove_segment(a.address[change.row], size(a.bytes[change.row])); break;
    case Turn::kSegmentMore:
      replay.add_segment(a.address[change.row], size(a.bytes[change.row]), a.stream[change.row], a.pool[change.row],
                         a.kind[change.row] == AllocatorEventKind::kSegmentMap);
      break;
    case Turn::kAlloc: replay.allocate(m.address[change.row], size(m.bytes[change.row])); break;
    case Turn::kOutOfMemory: break;
  }
}

std::vector<AllocatorShare> shares_of(const std::vector<AllocatorSegment>& segments, int64_t time_ns) {
  std::map<std::pair<StringId, int64_t>, AllocatorShare> shares;
  for (const AllocatorSegment& segment : segments) {
    AllocatorShare& share = shares[{segment.pool, segment.stream}];
    share.stream = segment.stream;
    share.pool = segment.pool;
    share.at.time_ns = time_ns;
    share.at.reserved_bytes += static_cast<int64_t>(segment.bytes);
    ++share.at.segments;
    for (const AllocatorPiece& piece : segment.pieces) {
      const auto bytes = static_cast<int64_t>(piece.bytes);
      if (piece.state == AllocatorBlockState::kAllocated) share.at.allocated_bytes += bytes;
      if (piece.state == AllocatorBlockState::kWaiting) share.at.waiting_bytes += bytes;
      if (piece.state == AllocatorBlockState::kFree) {
        share.at.largest_free_bytes = std::max(share.at.largest_free_bytes, bytes);
      }
    }
  }
  std::vector<AllocatorShare> out;
  for (const auto& [key, share] : shares) out.push_back(share);
  std::stable_sort(out.begin(), out.end(), [](const AllocatorShare& a, const AllocatorShare& b) {
    return a.at.reserved_bytes > b.at.reserved_bytes;
  });
  return out;
}

DeviceAllocator report_of(const Model& model, DeviceKey key) {
  DeviceAllocator out{.device_type = key.first, .device = key.second};
  AllocatorReplay replay;
  for (const Change& change : changes_of(model, key)) {
    apply(model, key, change, replay);
    const AllocatorMoment now = replay.moment(change.time_ns);
    if (change.turn == Turn::kOutOfMemory) {
      out.failures.push_back({.asked_bytes = model.memory_events.bytes[change.row], .at = now});
      continue;
    }
    FL_CHECK(now.free_bytes() >= now.largest_free_bytes,
             "allocator_report: the largest free block is part of the free");
    out.curve.push_back(now);
    const size_t last = out.curve.size() - 1;
    if (now.allocated_bytes > out.curve[out.most_allocated].allocated_bytes) out.most_allocated = last;
    if (now.reserved_bytes > out.curve[out.most_reserved].reserved_bytes) out.most_reserved = last;
    if (now.scattered_bytes() > out.curve[out.most_scattered].scattered_bytes()) out.most_scattered = last;
  }
  out.misplaced = replay.misplaced();
  return out;
}

std::vector<DeviceKey> devices_of(const Model& model) {
  std::vector<DeviceKey> devices;
  const AllocatorSegments& segments = model.allocator_segments;
  for (Row row = 0; row < segments.size(); ++row) devices.emplace_back(segments.device_type[row], segments.device[row]);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

}  // namespace

std::vector<DeviceAllocator> allocator_report(const Model& model) {
  std::vector<DeviceAllocator> out;
  for (const DeviceKey& key : devices_of(model)) {
    DeviceAllocator& device = out.emplace_back(report_of(model, key));
    const int64_t peak_ns = device.curve[device.most_allocated].time_ns;
    device.shares = shares_of(allocator_at(model, key.first, key.second, peak_ns), peak_ns);
  }
  return out;
}

std::vector<AllocatorSegment> allocator_at(const Model& model, int32_t device_type, int32_t device, int64_t time_ns) {
  const DeviceKey key{device_type, device};
  AllocatorReplay replay;
  bool is_first = true;
  for (const Change& change : changes_of(model, key)) {
    if (change.time_ns > time_ns && !is_first) break;
    apply(model, key, change, replay);
    is_first = false;
  }
  return replay.segments();
}

}  // namespace firelane::analyze
