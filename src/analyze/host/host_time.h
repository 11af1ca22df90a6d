// What the host did at each moment: one activity at a time, for each chain of threads.
//
// A *chain* is a thread, or several that never work at once because they wait for each other: the
// thread that trains and the autograd thread that runs its backward pass. Its segments cover the
// trace from start to end without gap or overlap, so time by activity adds up to any window.
//
// A moment belongs to the innermost slice that is open, with two exceptions: everything below a
// DataLoader's __next__ is input, everything below a garbage collection is that. And where the leading thread is in no
// operator while a collective of a CPU backend (gloo, MPI) is under way in another, it waits for the other ranks.
// How long the leading thread had no core in a step is known where the recorder noted it, but not when: it is taken out
// of the stretches that are far longer than their like, and what is left over out of all long ones evenly.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

enum class Activity : uint8_t {
  kInput,       // waiting for or preparing the next batch: DataLoader
  kPython,      // in a Python function
  kOp,          // in an operator, outside of its runtime calls
  kLaunch,      // in a call that queues device work
  kCall,        // in another runtime or driver call
  kSync,        // in a call that waits for the device
  kAllocation,  // in cudaMalloc and the like
  kGc,          // Python's garbage collector
  kLoading,     // loading or compiling kernels
  kRecorder,    // the profiler's own work, as far as the trace marks it
  kCollective,  // in, or waiting for, a collective of a CPU backend: other ranks
  kNoCore,      // ready to run, while other programs had the cores
  kUnrecorded,  // no slice is open: Python or other code that was not recorded
};
inline constexpr size_t kActivityCount = 13;
std::string_view name_of(Activity activity);  // "input", "python", ...

// A call of gc.collect() by the program, as recorders of Python functions name it.
bool is_gc_call(std::string_view python_function);

struct HostSegment {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Activity activity = Activity::kUnrecorded;
  Row slice = kNoRow;  // innermost open host slice
};

using ActivityTimes = std::array<int64_t, kActivityCount>;

struct HostChain {
  std::vector<LaneId> lanes;  // the first leads; the others run while it waits
  std::vector<HostSegment> segments;

  // Time by activity in [start, end); outside of the trace it counts as unrecorded. Sums to end - start.
  ActivityTimes times_in(int64_t start_ns, int64_t end_ns) const;
  // First segment that ends after `time_ns`.
  size_t segment_after(int64_t time_ns) const;

  // The same for those who ask for one moment after another: `near` is the segment of the question before (0 at first),
  // and becomes that of this one.
  ActivityTimes times_in(int64_t start_ns, int64_t end_ns, size_t& near) const;
  size_t segment_after(int64_t time_ns, size_t& near) const;
};

// Calls visit(row) for the slices of a chain that `pick` wants and that begin inside of none picked before: the
// outermost ones, lane by lane in order of time.
template <typename Pick, typename Visit>
void each_outermost(const Model& model, const HostChain& chain, const Pick& pick, const Visit& visit) {
  for (const LaneId lane : chain.lanes) {
    const auto l = static_cast<size_t>(lane);
    int64_t until = INT64_MIN;
    for (Row row = model.lanes.host_begin[l]; row < model.lanes.host_end[l]; ++row) {
      if (model.host_slices.start_ns[row] < until || !pick(row)) continue;
      until = model.host_slices.end_ns(row);
      visit(row);
    }
  }
}

struct HostTime {
  std::vector<HostChain> chains;        // [0] is the one that runs the steps or launches the most
  std::vector<uint32_t> chain_of_lane;  // kNoRow: a lane that neither launches, waits nor runs ops
  // The first chain is what the program waits for. Not where nothing of the host was recorded, nor where threads serve
  // requests side by side: that one of them is idle says nothing then.
  bool leads = false;
  IntervalSet no_core;  // of the leading chain

  // For the leading chain, without its waits for a core.
  int64_t took_ns(int64_t start_ns, int64_t end_ns) const {
    return end_ns - start_ns - (no_core.intervals().empty() ? 0 : no_core.covered_ns(start_ns, end_ns));
  }
};

HostTime host_time(const Model& model);

}  // namespace firelane::analyze
