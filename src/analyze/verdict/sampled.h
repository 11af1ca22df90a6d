// Where the training thread was, by stacks that were sampled beside the recording: in the judged steps, and while the
// device was idle. The line that is named is the innermost one of the program's own code: not of an installed package
// and not of Python's library, unless the stack has no other.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

struct SampledLine {
  std::string_view frame;  // "/home/a/train.py(41): collate"; lives as long as the model
  int64_t ns = 0;          // that its samples stand for
  int64_t on_cpu_ns = 0;   // of it, on a core
};

struct SampledPlaces {
  LaneId lane{};                          // the thread; nothing else is counted
  int64_t steps_ns = 0;                   // sampled time in the judged steps
  int64_t gaps_ns = 0;                    // of it, while the device was idle
  bool knows_cpu = true;                  // whether threads were on a core
  std::vector<SampledLine> in_steps;      // largest first; they add up to steps_ns
  std::vector<SampledLine> in_gaps;       // the same of gaps_ns
  std::vector<std::string_view> of_gaps;  // for each gap of the idle table, its largest; "": no sample in it
};

SampledPlaces sampled_places(const StudiedTrace& trace);

// The line of the program's own code in a stack, innermost first.
std::string_view own_frame(std::string_view stack);

}  // namespace firelane::analyze
