// Tiles: what a lane shows of a stretch of time, reduced to bins. docs/viewer-protocol.md draws the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"
#include "serve/timeline.h"

namespace firelane::serve {

inline constexpr uint64_t kBinsPerTile = 512;
inline constexpr uint32_t kTileMagic = 0x31544C46;  // "FLT1"
inline constexpr size_t kMaxTileNameBytes = 200;
inline constexpr uint8_t kCutBit = 0x40;  // of a slice's kind: partly outside of the recording

// A color for each kind of slice: HostKind's number, or 16 plus DeviceKind's.
uint8_t tile_kind(const Model& model, const SliceRef& slice);

struct TileSlice {
  uint32_t ref = 0;
  uint16_t row = 0;
};

// Slices shorter than a bin that start in it.
struct TileRun {
  uint64_t bin = 0;  // of the level, from the start of the trace
  float busy = 0;    // part of the bin that they fill, 0..1
  uint32_t count = 0;
  uint32_t longest = 0;  // ref
  uint16_t row = 0;
};

struct Tile {
  uint32_t lane = 0;
  uint64_t index = 0;
  std::vector<TileSlice> slices;  // by row, then start
  std::vector<TileRun> runs;
};

// REQUIRES: level <= kMaxLevel.
Tile make_tile(const Timeline& timeline, uint32_t lane, uint32_t level, uint64_t index);

// The answer's bytes.
std::string encode_tiles(const Model& model, uint32_t level, const std::vector<Tile>& tiles);

}  // namespace firelane::serve
