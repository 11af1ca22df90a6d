#include "model/front.h"

namespace firelane {

Front front_named(std::string_view name) {
  if (name == "firelane record" || name == "firelane attach") return Front::kCommand;
  if (name == "firelane.profile") return Front::kProfile;
  return name == "C++" ? Front::kCpp : Front::kTorch;
}

std::string_view flag_of(Front front, RecordOption option) {
  struct Flags {
    RecordOption option;
    std::string_view torch, command, profile, cpp;
  };
  // Firelane computes FLOPs from shapes.
  static constexpr Flags kFlags[] = {
      {RecordOption::kShapes, "record_shapes=True", "--shapes", "shapes=True", "options.shapes = true"},
      {RecordOption::kMemory, "profile_memory=True", "--memory", "memory=True", "options.memory = true"},
      {RecordOption::kStacks, "with_stack=True", "--stacks", "stacks=True", "with_stack=True"},
      {RecordOption::kModules, "with_modules=True", "--modules", "modules=True", "with_modules=True"},
      {RecordOption::kLines, "with_stack=True", "--lines", "lines=True", "with_stack=True"},
      {RecordOption::kFlops, "with_flops=True", "--shapes", "shapes=True", "options.shapes = true"},
      {RecordOption::kCudaSync, "enable_cuda_sync_events=True", "--cuda-sync", "cuda_sync=True",
       "options.cuda_sync = true"},
      {RecordOption::kMetrics, "PerformanceMetricsConfig(metric_names=[...])", "--metrics", "metrics=True",
       "options.metrics = true"},
  };
  const Flags& flags = kFlags[static_cast<size_t>(option)];
  switch (front) {
    case Front::kCommand: return flags.command;
    case Front::kProfile: return flags.profile;
    case Front::kCpp: return flags.cpp;
    default: return flags.torch;
  }
}

std::string plan_of(Front front, int64_t wait, int64_t active) {
  const std::string waiting = std::to_string(wait);
  const std::string steps = std::to_string(active);
  if (front == Front::kCommand)
    return "firelane record --wait " + waiting + " --steps " + steps + " -- python train.py";
  if (front == Front::kCpp)
    return "options.schedule = {.wait = " + waiting + ", .warmup = 1, .active = " + steps + "};";
  return "schedule(wait=" + waiting + ", warmup=1, active=" + steps + ")";
}

}  // namespace firelane
