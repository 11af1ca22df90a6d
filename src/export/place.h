// Where a trace stands in a file that holds several: the ranks of a job on one time axis.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/model.h"

namespace firelane::exporter {

// An end of an arrow from one trace to another. Arrows of other tools lead forward in time: one to a slice that began
// before, and waits, ends inside of it.
struct ArrowEnd {
  SliceRef slice;
  uint64_t id = 0;      // the same for both ends, and for no other arrow
  bool starts = false;  // here, with the slice
  int64_t time_ns = 0;  // where it ends, of the trace
};

// What torch.profiler leaves out of a Chrome trace or writes in other words. A drop-in for it does the same; our own
// exports keep what was recorded.
struct TorchRules {
  bool plain_texts = false;     // no quotation marks in names, and none of the keyword texts that have some
  bool has_collections = true;  // garbage collections, which are asked for there
};

struct ExportPlace {
  int64_t number = 0;                    // of the trace in the file: processes and arrows get ids of their own by it
  std::string name;                      // "rank 3", before the names of its processes; "": the only trace
  std::function<int64_t(int64_t)> time;  // from ns since the trace's start to ns of the file; must not go backwards
  std::vector<ArrowEnd> arrows{};
  bool without_memory = false;  // allocations are written elsewhere
  // traceName, for recordings of our own; it comes last, and tells who waits for the file that it is complete.
  std::string file{};
  TorchRules torch{};  // for recordings of our own

  bool is_alone() const { return name.empty(); }
};
inline constexpr int64_t kMostPlaces = 256;  // ids of more would meet

}  // namespace firelane::exporter
