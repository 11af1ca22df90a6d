// What the recorder knows of torch's caching allocator, as rows: segments, completed frees, and the state at the start.
// Times stay in ticks. Private to import/lane.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/events.h"
#include "format/notes.h"
#include "model/raw.h"

namespace firelane::importer {

class AllocatorRows {
 public:
  AllocatorRows(RawPool& pool, RawPart& part) : pool_(pool), part_(part) {}

  // "common", "graph 3", "pool 1".
  StringId pool_name(uint64_t pool);
  // REQUIRES: it is a segment or a completed free.
  void add_event(const format::EventRecord& record, int64_t time, LaneId lane);
  // False when its blocks do not fill it.
  bool add_segment(const format::SegmentNote& note);
  // Written as JSON until notes of segments came: [[device, address, bytes, stream, [[bytes, requested, allocated],
  // ...]], ...].
  void add_old_snapshot(std::string_view json, int64_t time);

 private:
  RawPool& pool_;
  RawPart& part_;
};

}  // namespace firelane::importer
