// What NCCL's flight recorder of one rank held: the last collectives, and how far each had come.
//
// torch.distributed keeps it in every process (TORCH_NCCL_TRACE_BUFFER_SIZE) and writes it when a collective times out;
// `_dump_nccl_trace()` asks for it at any time. Beside times it has what a trace lacks: which collectives were asked
// for but never began or never ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "model/model.h"

namespace firelane {

// Texts are of the log's own pool: thousands of entries share a few.
struct FlightEntry {
  int64_t record_id = kNoNumber;
  int64_t collective_sequence = kNoNumber;  // in its group; of collectives
  int64_t p2p_sequence = kNoNumber;         // in its group; of sends and receives
  int64_t op_id = kNoNumber;                // in its group; counts both, and each op of a coalesced one
  int64_t created_ns = kNoNumber;           // Unix time, this and the next two
  int64_t started_ns = kNoNumber;
  int64_t completed_ns = kNoNumber;
  StringId group = kNoString;              // process group's name
  StringId group_description = kNoString;  // what it is for
  StringId collective = kNoString;         // "all_reduce", without "nccl:"
  StringId input_sizes = kNoString;        // JSON: [[1024]]
  StringId output_sizes = kNoString;       // JSON
  StringId input_dtypes = kNoString;       // JSON: ["Float"]
  StringId output_dtypes = kNoString;      // JSON
  StringId place = kNoString;              // of the call in the user's code: "train.py(41): step"
  CommState state = CommState::kUnknown;
  bool is_p2p = false;
  bool is_retired = false;  // its watchdog has seen it end
};

struct FlightGroup {
  std::string name;
  std::string description;
  std::vector<int64_t> ranks;  // empty: not said, or cut
  int64_t last_enqueued = kNoNumber;
  int64_t last_started = kNoNumber;
  int64_t last_completed = kNoNumber;
};

struct FlightLog {
  std::string path;
  int64_t rank = kNoNumber;  // global
  std::string version;       // of the dump's layout
  std::string nccl_version;
  std::vector<FlightGroup> groups;
  StringPool strings;
  std::vector<FlightEntry> entries;  // in the order in which they were made
  int64_t malformed = 0;             // entries that were skipped

  std::string_view text(StringId id) const { return strings.view(id); }
};

}  // namespace firelane
