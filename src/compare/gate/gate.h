// Does the new version keep its limits? For CI: holds, does not hold, or cannot be told.
//
//   GateOptions options = {.limits = {{"step_time", "3%"}, {"peak_memory", "20 GiB"}}};
//   const GateResult result = gate(baseline, candidate, options);
//
// A limit in percent is how much worse the figure may be than the baseline's. It is broken when chance would hardly
// give a difference that large; where the runs are too few or too noisy to say, it is inconclusive. Counts and bytes do
// not vary by chance: one run a side is enough for them. Any other limit is what the mean of the new runs may at most
// be (at least, where more is better).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/difference/difference.h"
#include "compare/run/run.h"
#include "compare/statistics/change_points.h"

namespace firelane::compare {

struct Limit {
  std::string figure;  // of all_figures(), "kernel_groups", or the name of an SQL number
  std::string text;    // "3%", "25 ms", "20 GiB", "500"
};

struct ParsedLimit {
  bool relative = false;
  double value = 0;  // 0.03 for 3%; ns, bytes or a plain number
};
// The Error says what a limit looks like.
Result<ParsedLimit> parse_limit(const Limit& limit, Unit unit);

struct GateOptions {
  std::vector<Limit> limits;  // empty: default_limits()
  double alpha = 0.05;
};

// step_time 3%, gpu_time 3%, peak_memory 5%, kernel_groups 10%.
std::vector<Limit> default_limits();

enum class GateStatus : uint8_t { kHolds, kBroken, kInconclusive, kNotKnown };
std::string_view name_of(GateStatus status);  // "holds", "does not hold", "inconclusive", "not known"

struct GateRow {
  std::string figure;
  std::string label;
  Unit unit = Unit::kCount;
  std::string limit;
  GateStatus status = GateStatus::kNotKnown;
  Judgement judged;
  std::string detail;  // of kernel groups: which; why it is not known
};

struct GateResult {
  GateStatus status = GateStatus::kNotKnown;
  std::vector<GateRow> rows;
  std::vector<ChangePoint> changes;  // of the step, in the baseline's history
  size_t baseline_used = 0;          // runs of the baseline since its last change
  size_t baseline_runs = 0;
  Difference difference;  // of these against the new runs: why
  int exit_code() const;  // 0, 3 or 4
};

// `baseline` in the order in which the runs were made; runs before its last change are left out. An Error for a limit
// that cannot be read. REQUIRES: at least one run a side.
Result<GateResult> gate(const std::vector<Run>& baseline, const std::vector<Run>& candidate,
                        const GateOptions& options);

}  // namespace firelane::compare
