#include "analyze/memory/memory_at.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace firelane::analyze {

namespace {

constexpr uint64_t kSegmentUnit = uint64_t{2} << 20;

using CategorySums = std::array<int64_t, kMemoryCategoryCount>;

int64_t known_bytes(const CategorySums& sums) {
  int64_t known = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (i != static_cast<size_t>(MemoryCategory::kBeforeRecording)) known += sums[i];
  }
  return known;
}

bool is_alive(const MemoryBlock& block, int64_t time_ns) {
  return block.start_ns <= time_ns && block.end_ns > time_ns && block.bytes > 0;
}

// Fills bins one after another, each with its highest moment.
class BinFiller {
 public:
  BinFiller(MemoryBins& out, size_t bins, int64_t start_bytes) : out_(out), bins_(bins) {
    now_.allocated_bytes = start_bytes;
  }

  // The state so far holds until `time_ns`.
  void pass(int64_t time_ns) {
    while (out_.allocated_bytes.size() < bins_) {
      const int64_t bin_start = out_.from_ns + static_cast<int64_t>(out_.allocated_bytes.size()) * out_.bin_ns;
      if (!open_ && time_ns <= bin_start) return;
      if (!open_ || now_.allocated_bytes > best_.allocated_bytes) {
        best_ = now_;
        best_sums_ = sums_;
      }
      best_reserved_ = open_ ? std::max(best_reserved_, now_.reserved_bytes) : now_.reserved_bytes;
      open_ = true;
      if (time_ns < bin_start + out_.bin_ns) return;
      close();
    }
  }
  void take(const MemoryPoint& point) {
    now_ = point;
    sums_[static_cast<size_t>(point.category)] += point.change_bytes;
  }

 private:
  void close() {
    out_.allocated_bytes.push_back(best_.allocated_bytes);
    out_.reserved_bytes.push_back(best_reserved_);
    for (size_t i = 0; i < kMemoryCategoryCount; ++i) {
      const bool is_rest = i == static_cast<size_t>(MemoryCategory::kBeforeRecording);
      out_.categories[i].push_back(is_rest ? best_.allocated_bytes - known_bytes(best_sums_) : best_sums_[i]);
    }
    open_ = false;
  }

  MemoryBins& out_;
  size_t bins_;
  MemoryPoint now_;
  MemoryPoint best_;
  int64_t best_reserved_ = kNoNumber;
  CategorySums sums_{};
  CategorySums best_sums_{};
  bool open_ = false;
};

}  // namespace

std::string device_label(const DeviceMemory& device) {
  if (device.device_type == 0) return "cpu";
  // As torch.device() names them; numbers are those of c10::DeviceType.
  struct TypeName {
    int32_t type;
    std::string_view name;
  };
  constexpr TypeName kNames[] = {{1, "cuda"}, {6, "hip"},  {9, "xla"},   {12, "xpu"},
                                 {13, "mps"}, {15, "hpu"}, {19, "mtia"}, {20, "privateuseone"}};
  std::string type = "device" + std::to_string(device.device_type);
  for (const TypeName& each : kNames) {
    if (each.type == device.device_type) type = each.name;
  }
  return type + ":" + std::to_string(std::max(0, device.device));
}

MemoryBins memory_bins(const DeviceMemory& device, int64_t from_ns, int64_t to_ns, size_t bins) {
  const auto count = static_cast<int64_t>(bins);
  MemoryBins out{.from_ns = from_ns, .bin_ns = std::max<int64_t>(1, (to_ns - from_ns + count - 1) / count)};
  BinFiller filler(out, bins, device.start_bytes);
  for (const MemoryPoint& point : device.curve) {
    filler.pass(point.time_ns);
    filler.take(point);
  }
  filler.pass(INT64_MAX);
  return out;
}

MemoryMoment memory_at(const Model& model, const DeviceMemory& device, int64_t time_ns) {
  MemoryMoment moment{.point = {.time_ns = time_ns, .allocated_bytes = device.start_bytes}};
  for (const MemoryPoint& point : device.curve) {
    if (point.time_ns > time_ns) break;
    moment.point = point;
  }
  std::map<std::tuple<std::string, std::string, std::string, MemoryCategory>, MemoryOwner> owners;
  moment.before_recording_bytes = moment.point.allocated_bytes;
  for (const MemoryBlock& block : device.blocks) {
    if (!is_alive(block, time_ns)) continue;
    moment.alive.push_back(&block);
    moment.before_recording_bytes -= block.bytes;
    const MemoryOwner owner = owner_of(model, block);
    MemoryOwner& sum = owners.try_emplace({owner.op, owner.module, owner.place, owner.category}, owner).first->second;
    sum.bytes += block.bytes;
    ++sum.allocations;
  }
  for (const auto& [key, owner] : owners) moment.owners.push_back(owner);
  const auto larger = [](const auto& a, const auto& b) { return a.bytes > b.bytes; };
  std::stable_sort(moment.owners.begin(), moment.owners.end(), larger);
  std::stable_sort(moment.alive.begin(), moment.alive.end(),
                   [](const MemoryBlock* a, const MemoryBlock* b) { return a->bytes > b->bytes; });
  return moment;
}

bool has_recorded_segments(const Model& model, const DeviceMemory& device) {
  const AllocatorSegments& segments = model.allocator_segments;
  for (Row row = 0; row < segments.size(); ++row) {
    if (segments.device_type[row] == device.device_type && segments.device[row] == device.device) return true;
  }
  return false;
}

namespace {

std::vector<MemorySegment> recorded_segments(const Model& model, const DeviceMemory& device, int64_t time_ns) {
  std::unordered_map<uint64_t, const MemoryBlock*> alive;
  for (const MemoryBlock& block : device.blocks) {
    if (is_alive(block, time_ns)) alive[block.address] = &block;
  }
  std::vector<MemorySegment> out;
  for (const AllocatorSegment& segment : allocator_at(model, device.device_type, device.device, time_ns)) {
    MemorySegment& to =
        out.emplace_back(MemorySegment{.address = segment.address, .bytes = segment.bytes, .pieces = {}});
    for (const AllocatorPiece& piece : segment.pieces) {
      const auto found = piece.state == AllocatorBlockState::kAllocated ? alive.find(piece.address) : alive.end();
      to.pieces.push_back({.offset = piece.address - segment.address,
                           .bytes = piece.bytes,
                           .block = found == alive.end() ? nullptr : found->second,
                           .state = piece.state});
    }
  }
  return out;
}

std::vector<MemorySegment> inferred_segments(const DeviceMemory& device, int64_t time_ns) {
  std::map<uint64_t, uint64_t> units;  // begin and end of each touched stretch
  std::vector<const MemoryBlock*> alive;
  for (const MemoryBlock& block : device.blocks) {
    const auto bytes = static_cast<uint64_t>(std::max<int64_t>(0, block.bytes));
    const bool has_place = bytes > 0 && block.address < UINT64_MAX - bytes - kSegmentUnit;
    if (!has_place) continue;
    const uint64_t begin = block.address / kSegmentUnit * kSegmentUnit;
    uint64_t& end = units[begin];
    end = std::max(end, (block.address + bytes + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit);
    if (is_alive(block, time_ns)) alive.push_back(&block);
  }
  std::vector<MemorySegment> segments;
  for (const auto& [begin, end] : units) {
    if (!segments.empty() && begin <= segments.back().address + segments.back().bytes) {
      segments.back().bytes = std::max(segments.back().bytes, end - segments.back().address);
    } else {
      segments.push_back({.address = begin, .bytes = end - begin});
    }
  }
  std::sort(alive.begin(), alive.end(),
            [](const MemoryBlock* a, const MemoryBlock* b) { return a->address < b->address; });
  size_t at = 0;
  for (MemorySegment& segment : segments) {
    uint64_t filled = 0;
    for (; at < alive.size() && alive[at]->address < segment.address + segment.bytes; ++at) {
      const uint64_t offset = alive[at]->address - segment.address;
      if (offset < filled) continue;  // the free of what lay here was lost
      if (offset > filled) segment.pieces.push_back({filled, offset - filled, nullptr});
      const auto bytes = static_cast<uint64_t>(alive[at]->bytes);
      segment.pieces.push_back({offset, bytes, alive[at], AllocatorBlockState::kAllocated});
      filled = offset + bytes;
    }
    if (filled < segment.bytes) segment.pieces.push_back({filled, segment.bytes - filled, nullptr});
  }
  return segments;
}

}  // namespace

std::vector<MemorySegment> memory_segments(const Model& model, const DeviceMemory& device, int64_t time_ns) {
  return has_recorded_segments(model, device) ? recorded_segments(model, device, time_ns)
                                              : inferred_segments(device, time_ns);
}

}  // namespace firelane::analyze
