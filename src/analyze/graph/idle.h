// Why the device did nothing: each moment of each gap has one cause.
//
// A gap is a stretch in which no stream of any device worked. What ends it is the next piece of
// device work; the edge that decided when that work started (analyze/graph/graph.h) says why not sooner:
//  - its launch: before the launching call the host was late, and the cause is what the launching
//    chain was doing at each moment; from the call on it is launch latency;
//  - the work before on its stream: a gap between queued work;
//  - work of another stream: waiting for that;
//  - nothing in the trace: unknown, which is said.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/graph/graph.h"
#include "analyze/host/host_time.h"
#include "model/model.h"

namespace firelane::analyze {

// The first kActivityCount causes are "the host had not launched yet, it was in ...": Activity's own values.
enum class IdleCause : uint8_t {
  kLaunchLatency = kActivityCount,  // launched, not yet started
  kBetweenWork,                     // queued work follows queued work
  kOtherStream,                     // waits for work of another stream
  kUnknown,                         // the trace does not say
};
inline constexpr size_t kIdleCauseCount = kActivityCount + 4;
constexpr IdleCause cause_of(Activity activity) { return static_cast<IdleCause>(activity); }
constexpr bool is_host_late(IdleCause cause) { return static_cast<size_t>(cause) < kActivityCount; }
std::string_view name_of(IdleCause cause);  // "host: input", "launch latency"
// A sentence for people. Of light steps operators are known by their launches alone.
std::string_view words_for(IdleCause cause, bool is_light = false);

struct IdleSegment {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  IdleCause cause = IdleCause::kUnknown;
  Row slice = kNoRow;  // host slice in which the host was; kNoRow: none
};

struct IdleGap {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  IdleCause main_cause = IdleCause::kUnknown;  // the one with the largest part
  int64_t main_ns = 0;
  Row slice = kNoRow;  // where the host was for the longest, when it was late
  Row next = kNoRow;   // device work that ends the gap; kNoRow: the window ends first
};

using IdleTimes = std::array<int64_t, kIdleCauseCount>;

struct IdleTable {
  Interval window;
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;  // busy + idle = window; the causes add up to idle
  IdleTimes by_cause{};
  std::vector<IdleGap> gaps;          // in order of time
  std::vector<IdleSegment> segments;  // in order of time, covering the gaps exactly

  // Idle time by cause in [start, end).
  IdleTimes times_in(int64_t start_ns, int64_t end_ns) const;
};

// `recorded` is the graph replayed unchanged. The window is the replay's.
IdleTable idle_table(const Model& model, const HostTime& host, const Graph& graph, const Replay& recorded);

}  // namespace firelane::analyze
