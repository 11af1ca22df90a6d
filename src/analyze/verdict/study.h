// Everything that is known about where the time of a trace went: each analysis once, in order.
//
//   const Study& s = trace.get<study>();
//   s.undone.step_ns      // a step without recording
//   s.gain_ns(change)     // what a change would save per step
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "analyze/device/hardware_metrics.h"
#include "analyze/device/launches.h"
#include "analyze/graph/breakdown.h"
#include "analyze/graph/critical_path.h"
#include "analyze/graph/graph.h"
#include "analyze/graph/idle.h"
#include "analyze/graph/syncs.h"
#include "analyze/graph/whatif.h"
#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "analyze/verdict/bound.h"
#include "analyze/verdict/recording.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

// Slow steps that were timed and not recorded, where no recorded step is slow.
struct SlowSteps {
  std::vector<int64_t> numbers;  // of the slow ones, in order
  int64_t timed = 0;             // steps in all, recorded ones included, the first few left out
  int64_t usual_ns = 0;          // median of the others
  int64_t usual_slow_ns = 0;     // median of the slow ones
  int64_t excess_ns = 0;         // what they add to the average step
};
SlowSteps find_slow_steps(const Model& model);

// Which steps of a recording a trace holds.
enum class RecordedSteps : uint8_t { kAll, kLight, kFull };  // kFull: the recording has light ones, too
std::string_view name_of(RecordedSteps steps);

struct Study {
  bool has_device_work = false;
  bool not_understood = false;  // the trace has lanes of a device, and no reader knows what is on them
  bool host_unknown = false;    // nothing of the host is in the trace: kernels alone
  Accelerator accelerator = Accelerator::kUnknown;
  Origin origin = Origin::kOther;
  std::shared_ptr<const HostTime> host = std::make_shared<const HostTime>();  // never null
  StepList steps;
  std::vector<double> dispatch;  // without a device: by segment of the main chain (dispatch_shares); else empty
  double computing_share = 0;    // without a device: of the host's time, the part in which operators compute
  Graph graph;
  Replay recorded;  // the graph as it was recorded
  RecordingUndone undone;
  Replay played;  // the graph with recording undone
  IdleTable idle;
  Breakdown breakdown;
  LaunchTable launches;
  SyncTable syncs;
  CriticalPath path;                    // of `played`
  UnitUse unit_use;                     // while the device was busy, by hardware counters; unknown without them
  std::vector<Limit> work_limits;       // by row of device_slices: computing or memory
  Bound bound;                          // of the program
  Limit other_limit = Limit::kUnknown;  // when undone.undecided: what else it may be
  bool cold = false;                    // undecided because the steps were recorded before the host was warm
  std::vector<Interval> step_spans;     // judged steps, on the clock of `played`
  std::vector<Bound> step_bounds;       // one per judged step
  // The usual step, which every verb shows: undone.usual_ns. undone.step_ns is the mean, slow steps included.
  int64_t usual_step_ns = 0;
  int64_t usual_recorded_ns = 0;  // while recording
  RecordedSteps recorded_steps = RecordedSteps::kAll;
  SlowSteps slow_steps;
  // "while recording", or in which steps where a recording has light and full ones.
  std::string_view while_recording() const;
  // What a step takes on average, those that were only timed included.
  int64_t mean_step_ns() const { return undone.step_ns + slow_steps.excess_ns; }

  // Time per step that `change` saves, recording undone. Negative when it costs.
  int64_t gain_ns(const PreparedChange& change) const;
  int64_t gain_ns(const WhatIf& change) const { return gain_ns(PreparedChange(graph, change)); }
  // The same if recording cost the most that is likely: for findings that recording itself could feign.
  int64_t sure_gain_ns(const WhatIf& change) const;
  int64_t per_step(int64_t ns) const { return steps.judged <= 0 ? ns : ns / steps.judged; }
};

Study study(const StudiedTrace& trace);

}  // namespace firelane::analyze
