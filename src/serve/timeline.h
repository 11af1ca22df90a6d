// Where every slice is drawn, and for every row of a lane an index that answers "what is in this bin" without looking
// at the slices: the cost of a tile depends on its bins, not on the trace.
//
// A row holds slices that do not overlap, sorted by start. Host slices stand below their parents (row = depth, as long
// as they nest); device slices take the first row that is free. With that, at most one slice of at least a bin's length
// begins in a bin, and it is the last that does: everything before it is short, contiguous, and summed up by `sum`.
//
//   level of a bin   2^level ns
//   grid[b]          first slice that starts in bin b or later, at grid_level; coarser bins take every 2^k-th entry
//   longest[k][b]    of the slices that start in bin b at grid_level + k and are shorter than it, the longest
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::serve {

// A slice in 32 bits, as tiles name it: bit 31 says device.
inline constexpr uint32_t kDeviceBit = uint32_t{1} << 31;
inline SliceRef slice_of(uint32_t ref) { return {.row = ref & ~kDeviceBit, .on_device = (ref & kDeviceBit) != 0}; }
inline uint32_t ref_of(const SliceRef& slice) { return slice.on_device ? slice.row | kDeviceBit : slice.row; }

inline constexpr uint32_t kMaxLevel = 52;  // a bin of 52 days

class TimelineRow {
 public:
  // REQUIRES: refs sorted by start, not overlapping (beyond the last row of a crowded lane).
  TimelineRow(const Model& model, std::vector<uint32_t> refs);

  size_t size() const { return refs_.size(); }
  uint32_t ref(size_t i) const { return refs_[i]; }
  int64_t start_ns(size_t i) const { return starts_[i]; }
  int64_t duration_ns(size_t i) const { return total_ns(i, i + 1); }
  int64_t end_ns(size_t i) const { return starts_[i] + duration_ns(i); }
  // At least as long as a bin.
  bool is_long(size_t i, uint32_t level) const { return static_cast<uint64_t>(duration_ns(i)) >> level != 0; }
  // Sum of the durations of [begin, end).
  int64_t total_ns(size_t begin, size_t end) const { return static_cast<int64_t>(sums_[end] - sums_[begin]); }

  // The first slice that starts at `bin` of `level` or later.
  size_t first_in(uint64_t bin, uint32_t level) const;
  // The longest of [begin, end), which are the slices of `bin` shorter than it. REQUIRES: begin < end.
  size_t longest_in(uint64_t bin, uint32_t level, size_t begin, size_t end) const;

 private:
  void build_grid();
  void build_longest();

  std::vector<uint32_t> refs_;
  std::vector<int64_t> starts_;
  std::vector<uint64_t> sums_;  // sums_[i]: of the first i durations; wraps around for absurd ones
  uint32_t grid_level_ = 0;
  std::vector<uint32_t> grid_;
  std::vector<std::vector<uint32_t>> longest_;
};

struct TimelineLane {
  std::vector<TimelineRow> rows;
};

class Timeline {
 public:
  explicit Timeline(const Model& model, unsigned threads = 1);

  const std::vector<TimelineLane>& lanes() const { return lanes_; }  // as in model.lanes
  uint16_t row_of(const SliceRef& slice) const { return (slice.on_device ? device_rows_ : host_rows_)[slice.row]; }
  int64_t end_ns() const { return end_ns_; }  // last end of all slices

 private:
  std::vector<TimelineLane> lanes_;
  std::vector<uint16_t> host_rows_;    // row of each host slice on its lane
  std::vector<uint16_t> device_rows_;  // of each device slice
  int64_t end_ns_ = 0;
};

}  // namespace firelane::serve
