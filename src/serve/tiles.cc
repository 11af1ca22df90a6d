#include "serve/tiles.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/utf8.h"

namespace firelane::serve {

namespace {

void add_row(const TimelineRow& row, uint16_t number, uint32_t level, Tile& tile) {
  const uint64_t first_bin = tile.index * kBinsPerTile;
  size_t begin = row.first_in(first_bin, level);
  // What began earlier and reaches in: short ones are counted where they began.
  if (begin > 0 && row.is_long(begin - 1, level) && static_cast<uint64_t>(row.end_ns(begin - 1)) > first_bin << level) {
    tile.slices.push_back({row.ref(begin - 1), number});
  }
  const size_t last = row.first_in(first_bin + kBinsPerTile, level);
  uint64_t bin = first_bin;
  while (begin < last) {
    // Straight to the bin of the next slice: an empty stretch costs nothing.
    bin = std::max(bin, static_cast<uint64_t>(row.start_ns(begin)) >> level);
    const size_t end = row.first_in(bin + 1, level);
    const size_t short_end = row.is_long(end - 1, level) ? end - 1 : end;
    if (short_end > begin) {
      const double busy =
          static_cast<double>(row.total_ns(begin, short_end)) / static_cast<double>(uint64_t{1} << level);
      tile.runs.push_back({.bin = bin,
                           .busy = static_cast<float>(std::clamp(busy, 0.0, 1.0)),
                           .count = static_cast<uint32_t>(short_end - begin),
                           .longest = row.ref(row.longest_in(bin, level, begin, short_end)),
                           .row = number});
    }
    if (short_end < end) tile.slices.push_back({row.ref(short_end), number});
    begin = end;
    ++bin;
  }
}

class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    const size_t at = out_.size();
    out_.resize(at + sizeof(T));
    std::memcpy(out_.data() + at, &value, sizeof(T));
  }
  // fn(i) for each of `count` places, then zeros up to a multiple of 8 bytes.
  template <typename T, typename Fn>
  void array(size_t count, const Fn& fn) {
    size_t at = out_.size();
    out_.resize((at + count * sizeof(T) + 7) / 8 * 8);
    for (size_t i = 0; i < count; ++i, at += sizeof(T)) {
      const T value = static_cast<T>(fn(i));
      std::memcpy(out_.data() + at, &value, sizeof(T));
    }
  }
  void bytes(std::string_view text) {
    out_ += text;
    out_.resize((out_.size() + 3) / 4 * 4);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

StringId name_id(const Model& model, uint32_t ref) {
  const SliceRef slice = slice_of(ref);
  return slice.on_device ? model.device_slices.name[slice.row] : model.host_slices.name[slice.row];
}

std::string short_name(std::string_view text) {
  std::string valid;
  append_valid_utf8(valid, text.substr(0, kMaxTileNameBytes));
  if (valid.size() <= kMaxTileNameBytes) return valid;
  size_t end = kMaxTileNameBytes;  // replaced bytes made it longer
  while (end > 0 && (static_cast<unsigned char>(valid[end]) & 0xC0) == 0x80) --end;
  return valid.substr(0, end);
}

void write_tile(const Model& model, uint32_t level, const Tile& tile, ByteWriter& out) {
  out.put<uint32_t>(tile.lane);
  out.put<uint32_t>(static_cast<uint32_t>(tile.slices.size()));
  out.put<uint32_t>(static_cast<uint32_t>(tile.runs.size()));
  out.put<uint32_t>(0);
  out.put<double>(static_cast<double>(tile.index));

  const std::vector<TileSlice>& slices = tile.slices;
  const auto of_slice = [&](size_t i, const auto& host, const auto& device) {
    const SliceRef slice = slice_of(slices[i].ref);
    return slice.on_device ? device[slice.row] : host[slice.row];
  };
  const HostSlices& host = model.host_slices;
  const DeviceSlices& device = model.device_slices;
  out.array<double>(slices.size(), [&](size_t i) { return of_slice(i, host.start_ns, device.start_ns); });
  out.array<double>(slices.size(), [&](size_t i) { return of_slice(i, host.duration_ns, device.duration_ns); });
  out.array<uint32_t>(slices.size(), [&](size_t i) { return slices[i].ref; });
  out.array<uint32_t>(slices.size(), [&](size_t i) { return name_id(model, slices[i].ref); });
  out.array<uint16_t>(slices.size(), [&](size_t i) { return slices[i].row; });
  out.array<uint8_t>(slices.size(), [&](size_t i) {
    const SliceRef slice = slice_of(slices[i].ref);
    const bool is_cut = slice.on_device && device.window[slice.row] != WindowMark::kInside;
    return tile_kind(model, slice) | (is_cut ? kCutBit : 0);
  });

  const std::vector<TileRun>& runs = tile.runs;
  out.array<double>(runs.size(), [&](size_t i) { return runs[i].bin << level; });
  out.array<double>(runs.size(), [&](size_t) { return uint64_t{1} << level; });
  out.array<float>(runs.size(), [&](size_t i) { return runs[i].busy; });
  out.array<uint32_t>(runs.size(), [&](size_t i) { return runs[i].count; });
  out.array<uint32_t>(runs.size(), [&](size_t i) { return name_id(model, runs[i].longest); });
  out.array<uint16_t>(runs.size(), [&](size_t i) { return runs[i].row; });
  out.array<uint8_t>(runs.size(), [&](size_t i) { return tile_kind(model, slice_of(runs[i].longest)); });
}

}  // namespace

uint8_t tile_kind(const Model& model, const SliceRef& slice) {
  return slice.on_device ? static_cast<uint8_t>(16 + static_cast<uint8_t>(model.device_slices.kind[slice.row]))
                         : static_cast<uint8_t>(model.host_slices.kind[slice.row]);
}

Tile make_tile(const Timeline& timeline, uint32_t lane, uint32_t level, uint64_t index) {
  Tile tile{.lane = lane, .index = index};
  const auto end = static_cast<uint64_t>(timeline.end_ns());
  const bool is_behind = index > (end >> level) / kBinsPerTile;  // also keeps what follows from overflowing
  if (is_behind || lane >= timeline.lanes().size()) return tile;
  const std::vector<TimelineRow>& rows = timeline.lanes()[lane].rows;
  for (size_t row = 0; row < rows.size(); ++row) add_row(rows[row], static_cast<uint16_t>(row), level, tile);
  return tile;
}

std::string encode_tiles(const Model& model, uint32_t level, const std::vector<Tile>& tiles) {
  std::vector<StringId> names;
  for (const Tile& tile : tiles) {
    for (const TileSlice& slice : tile.slices) names.push_back(name_id(model, slice.ref));
    for (const TileRun& run : tile.runs) names.push_back(name_id(model, run.longest));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());

  ByteWriter out;
  out.put<uint32_t>(kTileMagic);
  out.put<uint32_t>(level);
  out.put<uint32_t>(static_cast<uint32_t>(tiles.size()));
  out.put<uint32_t>(static_cast<uint32_t>(names.size()));
  for (const Tile& tile : tiles) write_tile(model, level, tile, out);
  for (const StringId name : names) {
    const std::string text = short_name(model.text(name));
    out.put<uint32_t>(static_cast<uint32_t>(name));
    out.put<uint32_t>(static_cast<uint32_t>(text.size()));
    out.bytes(text);
  }
  return out.take();
}

}  // namespace firelane::serve
