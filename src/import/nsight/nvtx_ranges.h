// NVTX_EVENTS of an Nsight Systems export: ranges and marks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "import/sqlite/database.h"
#include "model/raw.h"

namespace firelane::importer {

// Ids of the export: 24 bits each.
inline int64_t pid_of(int64_t global_id) { return (global_id >> 24) & 0xffffff; }
inline int64_t tid_of(int64_t global_id) { return global_id & 0xffffff; }

class NvtxRanges {
 public:
  // `thread_lane` of a globalTid, `string` of an id of StringIds, `joined` an id that is unique beyond its process.
  NvtxRanges(SqlDatabase& database, RawPool& pool, RawPart& part, std::function<LaneId(int64_t)> thread_lane,
             std::function<StringId(int64_t)> string, std::function<int64_t(int64_t, int64_t)> joined)
      : database_(database),
        pool_(pool),
        part_(part),
        thread_lane_(std::move(thread_lane)),
        string_(std::move(string)),
        joined_(std::move(joined)) {}

  // Returns how many rows there were.
  uint64_t read();

 private:
  LaneId range_lane(int64_t pid, const RawHostSlice& slice);
  Row collective(std::string_view name, std::string_view json);

  SqlDatabase& database_;
  RawPool& pool_;
  RawPart& part_;
  std::function<LaneId(int64_t)> thread_lane_;
  std::function<StringId(int64_t)> string_;
  std::function<int64_t(int64_t, int64_t)> joined_;
  std::map<int64_t, std::vector<int64_t>> range_ends_;  // by process
};

}  // namespace firelane::importer
