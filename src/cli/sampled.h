// Sampled stacks as people and other tools read them: a report, speedscope's file, collapsed stacks.
#pragma once

#include <string>

#include "live/sampler.h"
#include "report/table.h"

namespace firelane::cli {

// Functions by the time that they were on a core themselves, and threads. `row_count` of each; 0: all.
report::Report sample_report(const live::Samples& samples, size_t row_count);

// speedscope's JSON: a profile a thread. A stack that was not on a core ends in kWaiting. `firelane view` opens it.
std::string speedscope_of(const live::Samples& samples, const std::string& name);

// Lines "thread;root;...;leaf COUNT" for flamegraph.pl and others.
std::string collapsed_of(const live::Samples& samples);

inline constexpr const char* kWaiting = "[waiting]";

}  // namespace firelane::cli
