// What the rows of an Nsight Systems export refer to by number: strings, processes, threads and streams.
//
// Each reader of a part has its own: several read a file side by side, and number its processes alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/sqlite/database.h"
#include "model/raw.h"

namespace firelane::importer {

inline constexpr std::string_view kNsightKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
inline constexpr std::string_view kNsightCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";

class NsightNames {
 public:
  NsightNames(SqlDatabase& database, RawPool& pool, RawPart& part) : database_(database), pool_(pool), part_(part) {}

  void read() {
    read_strings();
    read_processes();
  }
  // Whether the file lists its processes: only then all readers number them alike.
  bool are_processes_known() const { return are_processes_known_; }

  StringId string(int64_t id);
  // Correlation ids count from 0 in each process.
  int64_t joined(int64_t pid, int64_t id);
  LaneId thread_lane(int64_t global_tid);
  // A stream's lane; streams of several processes on one device have the same numbers.
  LaneId stream_lane(int64_t device, int64_t stream, int64_t pid);

 private:
  void read_strings();
  void read_processes();
  LaneId find_thread_lane(int64_t global_tid);
  LaneId find_stream_lane(int64_t device, int64_t stream, int64_t pid);

  SqlDatabase& database_;
  RawPool& pool_;
  RawPart& part_;
  std::vector<StringId> small_strings_;            // of the ids from 0 on
  std::unordered_map<int64_t, StringId> strings_;  // of all others
  std::map<int64_t, StringId> process_names_;
  std::map<std::pair<int64_t, int64_t>, StringId> thread_names_;
  std::map<int64_t, int64_t> process_index_;
  bool are_processes_known_ = false;
  // Most rows are of the process, the thread and the stream of the row before.
  int64_t last_pid_ = INT64_MIN;
  int64_t last_index_ = 0;
  std::optional<std::pair<int64_t, LaneId>> last_thread_;
  std::optional<std::pair<std::tuple<int64_t, int64_t, int64_t>, LaneId>> last_stream_;
  std::map<std::pair<int64_t, int64_t>, LaneId> thread_lanes_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, LaneId> stream_lanes_;
  std::map<std::pair<int64_t, int64_t>, int64_t> stream_owner_;
};

}  // namespace firelane::importer
