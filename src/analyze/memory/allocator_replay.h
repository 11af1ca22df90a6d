// One device's caching allocator, event by event. Private to analyze/memory/allocator.cc and its tests.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyze/memory/allocator.h"
#include "model/model.h"

namespace firelane::analyze {

class AllocatorReplay {
 public:
  void clear();
  void add_segment(uint64_t address, uint64_t bytes, int64_t stream, StringId pool, bool is_expandable);
  // For a state that was written in full: exactly these bytes.
  void place(uint64_t address, uint64_t bytes, AllocatorBlockState state);

  void allocate(uint64_t address, uint64_t asked_bytes);
  void ask_free(uint64_t address);
  void complete_free(uint64_t address);
  void remove_segment(uint64_t address, uint64_t bytes);

  AllocatorMoment moment(int64_t time_ns) const;
  std::vector<AllocatorSegment> segments() const;
  int64_t misplaced() const { return misplaced_; }

 private:
  struct Segment {
    uint64_t bytes = 0;
    int64_t stream = kNoNumber;
    StringId pool = kNoString;
    bool is_expandable = false;
  };
  struct Block {
    uint64_t bytes = 0;
    bool is_waiting = false;
  };
  using Segments = std::map<uint64_t, Segment>;
  using Gaps = std::map<uint64_t, uint64_t>;

  Segments::iterator segment_of(uint64_t address);
  Gaps::iterator gap_of(uint64_t address);
  void add_gap(uint64_t address, uint64_t bytes);
  void erase_gap(Gaps::iterator gap);
  // Takes [address, address + bytes) out of the gap around it. False: there is no such gap.
  bool take(uint64_t address, uint64_t bytes);
  // Back into the free memory of its segment, joined with what is free beside it.
  void give(uint64_t address, uint64_t bytes);

  Segments segments_;
  std::map<uint64_t, Block> blocks_;
  Gaps gaps_;
  std::map<uint64_t, int64_t> gap_sizes_;  // size -> how many
  int64_t reserved_ = 0;
  int64_t allocated_ = 0;
  int64_t waiting_ = 0;
  int64_t misplaced_ = 0;
};

}  // namespace firelane::analyze
