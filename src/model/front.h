// Which front recorded a trace, and what that front calls each option: advice names the flag that the user can type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firelane {

enum class Front : uint8_t {
  kTorch,    // torch.profiler, firelane.profiler, or not known
  kCommand,  // firelane record
  kProfile,  // with firelane.profile(...)
  kCpp,      // include/firelane/profiler.h
};

enum class RecordOption : uint8_t { kShapes, kMemory, kStacks, kModules, kLines, kFlops, kCudaSync, kMetrics };

// As the recorder names it in its metadata, e.g. "firelane record"; kTorch for every other name.
Front front_named(std::string_view name);

// "--stacks", "stacks=True", "with_stack=True". C++ records no Python: its stacks, modules and lines are
// those of torch.profiler, which knows lines only by stacks.
std::string_view flag_of(Front front, RecordOption option);

// How that front records `active` steps after `wait` others: "firelane record --wait 5 --steps 50 -- python train.py",
// "schedule(wait=5, warmup=1, active=50)".
std::string plan_of(Front front, int64_t wait, int64_t active);

}  // namespace firelane
