// The chain of dependencies that decides how long the window takes, from its end back to its start.
//
// Shortening anything else gains nothing. The pieces lie on the clock of a replay (recording undone
// or not), follow each other without gap, and add up to the window exactly.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/graph/graph.h"
#include "analyze/host/host_time.h"
#include "model/model.h"

namespace firelane::analyze {

enum class PathClass : uint8_t {
  kHost,           // the host's own work, but for input
  kInput,          // waiting for or preparing a batch
  kCompute,        // kernels
  kCommunication,  // collectives
  kCopy,           // memcpys and memsets
  kLatency,        // from launch to start, between queued work, from the end of work to the waiting call's return
  kUnknown,        // a wait that the trace does not explain
};
inline constexpr size_t kPathClassCount = 7;
std::string_view name_of(PathClass path_class);  // "host", "input", ...
using PathTimes = std::array<int64_t, kPathClassCount>;

struct PathPiece {
  int64_t start_ns = 0;  // on the replay's clock
  int64_t end_ns = 0;
  PathClass path_class = PathClass::kUnknown;
  Interval recorded;  // where to find it in the trace
  // Which kind of edge led to it: why it was not earlier. kEdgeKindCount: the begin of the window.
  uint8_t reached_by = kEdgeKindCount;
  Row row = kNoRow;  // device slice (compute, communication, copy) or host slice (host, input), when there is one
};

struct CriticalPath {
  std::vector<PathPiece> pieces;  // in order of time
  PathTimes by_class{};           // adds up to total_ns
  // By kind of the edge that led to it, the begin of the window last; adds up to total_ns.
  std::array<int64_t, kEdgeKindCount + 1> by_edge{};
  ActivityTimes host{};  // the host and input pieces by activity, recording undone in proportion
  int64_t start_ns = 0;
  int64_t total_ns = 0;

  // Time by class in [start, end) on the replay's clock.
  PathTimes times_in(int64_t start_ns, int64_t end_ns) const;
};

CriticalPath critical_path(const HostTime& host, const Graph& graph, const Replay& played);

}  // namespace firelane::analyze
