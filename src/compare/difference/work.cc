#include "compare/difference/work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "compare/statistics/corrections.h"
#include "compare/statistics/permutation.h"

namespace firelane::compare {

namespace {

double per_call(const WorkGroup* group) {
  return group == nullptr || group->calls <= 0 ? 0 : group->total_ns / group->calls;
}

void add(const WorkGroup* before, const WorkGroup* after, WorkChange& sum, double& largest) {
  const double calls_before = before == nullptr ? 0 : before->calls;
  const double calls_after = after == nullptr ? 0 : after->calls;
  const double old_length = before == nullptr ? per_call(after) : per_call(before);
  const double new_length = after == nullptr ? old_length : per_call(after);
  sum.calls_before += calls_before;
  sum.calls_after += calls_after;
  sum.ns_before += before == nullptr ? 0 : before->total_ns;
  sum.ns_after += after == nullptr ? 0 : after->total_ns;
  sum.path_before += before == nullptr ? 0 : before->path_ns;
  sum.path_after += after == nullptr ? 0 : after->path_ns;
  sum.by_calls_ns += (calls_after - calls_before) * old_length;
  sum.by_speed_ns += calls_after * (new_length - old_length);
  ++sum.places;
  const double change = std::abs((after == nullptr ? 0 : after->total_ns) - (before == nullptr ? 0 : before->total_ns));
  if (sum.places > 1 && change <= largest) return;
  largest = change;
  const WorkGroup& shown = after != nullptr ? *after : *before;
  sum.module = shown.module;
  sum.line = shown.line;
  if (before != nullptr) {
    sum.dims_before = before->dims;
    sum.precision_before = precision_of(*before);
  }
  if (after != nullptr) {
    sum.dims_after = after->dims;
    sum.precision_after = precision_of(*after);
  }
}

// What a run's kernels of an op took.
std::map<std::pair<std::string, std::string>, double> times_of(const Run& run) {
  std::map<std::pair<std::string, std::string>, double> out;
  for (const WorkGroup& group : run.work) out[{group.op, group.kernel}] += group.total_ns;
  return out;
}

}  // namespace

std::vector<WorkChange> work_changes(const Run& before, const Run& after, std::span<const WorkMatch> matches) {
  using Key = std::tuple<std::string, std::string, std::string, Change>;
  std::map<Key, std::pair<WorkChange, double>> sums;
  for (const WorkMatch& match : matches) {
    const WorkGroup* was = match.before == kNone ? nullptr : &before.work[match.before];
    const WorkGroup* is = match.after == kNone ? nullptr : &after.work[match.after];
    const WorkGroup& shown = is != nullptr ? *is : *was;
    const Change change = change_of(was, is);
    const std::string kernel_before = was == nullptr ? "" : was->kernel;
    const std::string kernel_after = is == nullptr ? "" : is->kernel;
    auto& [sum, largest] = sums[{shown.op, kernel_before, kernel_after, change}];
    sum.part = shown.part;
    sum.change = change;
    sum.op = shown.op;
    sum.kernel_before = kernel_before;
    sum.kernel_after = kernel_after;
    add(was, is, sum, largest);
  }
  std::vector<WorkChange> out;
  for (auto& [key, sum] : sums) out.push_back(std::move(sum.first));
  const auto weight = [](const WorkChange& w) {
    return std::max(std::abs(w.path_after - w.path_before), std::abs(w.change_ns()) / 4);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const WorkChange& a, const WorkChange& b) { return weight(a) > weight(b); });
  return out;
}

void judge_work(const std::vector<Run>& before, const std::vector<Run>& after, double batch_ratio,
                const JudgeOptions& options, std::vector<WorkChange>& work) {
  const std::vector<double> one_a_run_before(before.size(), 1.0);
  const std::vector<double> one_a_run_after(after.size(), 1.0);
  if (PermutationTest(one_a_run_before, one_a_run_after).smallest_p() > options.alpha) return;
  std::vector<std::map<std::pair<std::string, std::string>, double>> was;
  std::vector<std::map<std::pair<std::string, std::string>, double>> is;
  for (const Run& run : before) was.push_back(times_of(run));
  for (const Run& run : after) is.push_back(times_of(run));
  const auto times = [](const auto& runs, const std::string& op, const std::string& kernel, double divided_by) {
    std::vector<double> out;
    for (const auto& run : runs) {
      const auto found = run.find({op, kernel});
      out.push_back(found == run.end() ? 0 : found->second / divided_by);
    }
    return out;
  };
  // Kernels of an op that other rows share are tested with them: those rows get the same answer.
  constexpr size_t kMostTests = 200;
  std::vector<double> p_values;
  for (size_t i = 0; i < std::min(work.size(), kMostTests); ++i) {
    const std::vector<double> first = times(was, work[i].op, work[i].kernel_before, 1);
    const std::vector<double> second = times(is, work[i].op, work[i].kernel_after, batch_ratio);
    p_values.push_back(PermutationTest(first, second).p());
  }
  const std::vector<double> corrected = benjamini_hochberg(p_values);
  for (size_t i = 0; i < corrected.size(); ++i) work[i].p = corrected[i];
}

}  // namespace firelane::compare
