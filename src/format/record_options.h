// What a recording can be asked for: one list, from which the recorder's options (record/core/session.h), Python's
// _record.RecordOptions, and the flags of `firelane record` are made. tests/python/test_options.py compares it with
// what is written by hand: include/firelane/profiler.h, firelane.profile, _record.pyi and the table in
// docs/profiler.md.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

// X(name, is on by default, key, help). A trace says by the key whether the option was on: torch.profiler's argument
// where it has one, because readers read its traces, too.
#define FL_RECORD_OPTIONS(X)                                                                                      \
  X(shapes, false, "record_shapes", "sizes, dtypes, strides and plain values of every op's inputs")               \
  X(memory, false, "profile_memory", "allocations and frees, on the CPU and on the GPU")                          \
  X(stacks, false, "with_stack", "Python functions, C calls and garbage collections (the most expensive option)") \
  X(modules, false, "with_modules", "nn.Module calls, named by their path in the model")                          \
  X(lines, false, "with_lines", "the line of the Python program that called each operator")                       \
  X(cuda, true, "with_cuda", "the GPU's kernels, copies, CUDA calls and power (where there is a GPU)")            \
  X(cuda_sync, false, "with_cuda_sync",                                                                           \
    "what each CUDA synchronization waited for (costs as much as recording CUDA itself)")                         \
  X(metrics, false, "with_metrics", "the GPU's hardware metrics: SMs, tensor cores, DRAM, PCIe, NVLink")

namespace firelane::format {

struct RecordOption {
  std::string_view name;
  bool is_on_by_default = false;
  std::string_view key;
  std::string_view help;
};

inline constexpr std::array kRecordOptions = {
#define FL_OPTION(name, on, key, help) RecordOption{#name, on, key, help},
    FL_RECORD_OPTIONS(FL_OPTION)
#undef FL_OPTION
};

// What many rules of a verdict need (82 of 124 planted faults come first without, 109 with: docs/accuracy.md). The
// commands that give one, `record` and `attach`, turn these on unless told not to; recordings that go on for weeks,
// Python and C++ leave them off.
inline bool is_for_verdicts(std::string_view name) { return name == "shapes" || name == "memory" || name == "lines"; }

// Between two samples of metrics.
inline constexpr double kShortestMetricIntervalMs = 0.02;
inline constexpr double kLongestMetricIntervalMs = 1000;

// "metric_interval_ms: between 0.02 and 1000, not nan"; "": it is one.
inline std::string wrong_metric_interval(double ms) {
  if (ms >= kShortestMetricIntervalMs && ms <= kLongestMetricIntervalMs) return {};
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), "metric_interval_ms: between %g and %g, not %g", kShortestMetricIntervalMs,
                kLongestMetricIntervalMs, ms);
  return text.data();
}

}  // namespace firelane::format
