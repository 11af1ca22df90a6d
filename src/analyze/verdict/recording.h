// Recording undone: how long a step takes when nobody records it.
//
// A recorder slows the host, which can make a device-bound program look host-bound. Its cost per
// event is taken out of the host's stretches and the dependency graph replayed: work that the
// device had to wait for comes earlier, work that was device-bound stays.
//
// Our own traces carry the cost of each kind of event as measured in the program, and the true
// steps: then the costs are fitted so that the replay gives the true step, unless recorded and other steps differ by no
// more than steps differ among themselves: the measured costs are the better answer then. For other traces the costs
// are estimates (docs/analyses.md says from what), with a range. Where several steps of a program on a CPU tell how
// long one takes (torch_stretches.h), the costs are fitted to that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/graph/graph.h"

namespace firelane::analyze {

enum class CostSource : uint8_t {
  kBaseline,   // fitted to steps that were timed without recording
  kMeasured,   // costs per event measured by the recorder, in this program
  kEstimated,  // usual costs of torch.profiler
};
std::string_view name_of(CostSource source);
std::string_view words_for(CostSource source);  // where the length of a step without recording is known from

struct RecordingCosts {
  SliceCosts costs;
  std::vector<double> pace;  // both as build_graph takes them
  RecorderCharges charges;
  int64_t step_ns = kNoNumber;  // without recording, where the trace tells; and what recording took of it
  int64_t removed_ns = 0;
  CostSource source = CostSource::kEstimated;
  double low = 0;   // unless step_ns is known, the truth lies between costs times this ...
  double high = 0;  // ... and this
};

RecordingCosts recording_costs(const Model& model, const HostTime& host, const StepList& steps);

struct RecordingUndone {
  CostSource source = CostSource::kEstimated;
  double factor = 1;      // of the costs, as used by every replay
  bool repeated = false;  // as used by every replay
  double most = 1;        // the largest factor that is likely: what remains to gain then is sure
  // The mean: the window by its steps.
  int64_t recorded_ns = 0;
  int64_t step_ns = 0;  // without recording
  // The usual step (usual_length), or the median of those that were timed without recording.
  int64_t usual_recorded_ns = 0;
  int64_t usual_ns = 0;
  int64_t low_ns = 0;  // the range in which usual_ns lies
  int64_t high_ns = 0;
  int64_t cost_ns = 0;              // of a usual recorded step, what recording took
  int64_t baseline_ns = kNoNumber;  // median of the steps that were timed without recording
  bool within_noise = false;        // recorded steps differ from those by no more than steps differ
  // The range is so wide that host-bound and device-bound are both possible.
  bool undecided = false;

  ReplayOptions at(double factor_) const { return {.recording_removed = factor_, .repeated = repeated}; }
};

// `recorded`: the graph as it was recorded. `at_ends` is shown the replays at the low and the high end of the costs'
// range, in this order, where the costs are not known from a baseline. The replay is that with recording undone.
std::pair<RecordingUndone, Replay> undo_recording(const Model& model, const Graph& graph, const Replay& recorded,
                                                  const RecordingCosts& costs, const StepList& steps,
                                                  const std::function<void(const Replay&)>& at_ends);

}  // namespace firelane::analyze
