// What torch.profiler added to the steps of a program on a CPU, read from the stretches between neighboring events.
//
// The time line of a thread is cut wherever an operator, an annotation or a Python function begins or ends. In a short
// stretch there is little but the profiler and torch's dispatcher, so a fixed share of it is the profiler's: on a fast
// host and on a slow one, and also where both run slowly because a long operator took the caches from them. Of a long
// stretch, in which the program computes, only as much counts as a few usual (median) stretches take: sorting for
// milliseconds costs the profiler no more than adding two numbers.
//
// Steps repeat the same events. What interrupts them (other programs, page faults of the profiler's growing buffers)
// makes a stretch longer and never shorter, and seldom the same one in two steps. So of each stretch the lower third of
// all such steps is taken, which for two steps is the shorter one; of a long stretch the mean of those that differ by
// noise. The sum of these is a step that nothing interrupted. Without two such steps there is no telling; the shares of
// the stretches as they are were fitted apart.
//
// Fitted and tested by bench/diagnose: docs/analyses.md, "Recording undone", says with which programs.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/graph/graph.h"
#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "model/model.h"

namespace firelane::analyze {

struct TorchStretches {
  RecorderCharges charges;      // the profiler's part of the stretches as they are; empty: too few to tell
  int64_t step_ns = kNoNumber;  // without the profiler, interrupted by nothing; kNoNumber: no two steps are alike
  int64_t removed_ns = 0;       // the profiler's part, which is not in step_ns
};

// REQUIRES: torch.profiler recorded, and no device.
TorchStretches torch_stretches(const Model& model, const HostTime& host, const StepList& steps);

}  // namespace firelane::analyze
