#include "compare/difference/difference.h"

namespace firelane::compare {

namespace {

double per_second(double amount, const Run& run) {
  return amount > 0 && run.step_ns > 0 ? amount * 1e9 / static_cast<double>(run.step_ns) : -1;
}

double if_device(const Run& run, double value) { return run.has_device_work ? value : -1; }

}  // namespace

const std::vector<FigureInfo>& all_figures() {
  static const std::vector<FigureInfo> figures = {
      {"step_time", "Step", Unit::kNs, false, [](const Run& r) { return static_cast<double>(r.step_ns); }},
      {"gpu_time", "GPU time", Unit::kNs, false,
       [](const Run& r) { return if_device(r, static_cast<double>(r.gpu_ns)); }},
      {"gpu_busy", "GPU busy", Unit::kNs, false,
       [](const Run& r) { return if_device(r, static_cast<double>(r.busy_ns)); }},
      {"input_wait", "Waiting for input", Unit::kNs, false,
       [](const Run& r) { return static_cast<double>(r.input_wait_ns); }},
      {"peak_memory", "Peak memory", Unit::kBytes, false,
       [](const Run& r) { return r.has_memory ? static_cast<double>(r.peak_bytes) : -1; }},
      {"reserved_memory", "Reserved memory", Unit::kBytes, false,
       [](const Run& r) {
         return r.has_memory && r.reserved_bytes != kNoNumber ? static_cast<double>(r.reserved_bytes) : -1;
       }},
      {"launches", "Launches", Unit::kCount, false, [](const Run& r) { return if_device(r, r.launches); }},
      {"kernels", "Kernels", Unit::kCount, false, [](const Run& r) { return if_device(r, r.kernels); }},
      {"copies", "Copies and memsets", Unit::kCount, false, [](const Run& r) { return if_device(r, r.copies); }},
      {"syncs", "Synchronizing calls", Unit::kCount, false, [](const Run& r) { return if_device(r, r.syncs); }},
      {"ops", "Operators", Unit::kCount, false, [](const Run& r) { return r.ops; }},
      {"allocator_calls", "cudaMalloc, cudaFree", Unit::kCount, false,
       [](const Run& r) { return if_device(r, r.allocator_calls); }},
      {"samples_per_second", "Samples/s", Unit::kPerSecond, true,
       [](const Run& r) { return per_second(static_cast<double>(r.samples), r); }},
      {"tokens_per_second", "Tokens/s", Unit::kPerSecond, true,
       [](const Run& r) { return per_second(static_cast<double>(r.tokens), r); }},
      {"mfu", "Part of peak FLOP/s", Unit::kPercent, true, [](const Run& r) { return r.mfu_percent; }},
      {"energy", "Energy", Unit::kJoules, false, [](const Run& r) { return r.energy_joules; }},
  };
  return figures;
}

}  // namespace firelane::compare
