#include "compare/gate/gate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "compare/statistics/corrections.h"
#include "compare/statistics/permutation.h"

namespace firelane::compare {

namespace {

constexpr std::string_view kKernelGroups = "kernel_groups";
constexpr size_t kLongestName = 60;  // of a kernel, in a line for people
// Fewer runs than these have no history to look for changes in.
constexpr size_t kLeastHistory = 8;

const FigureInfo* find_figure(const std::string& name) {
  const auto& all = all_figures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const FigureInfo& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// The figure of each run; none when a run does not know it.
std::vector<double> values_of_limit(const std::vector<Run>& runs, const std::string& name, const FigureInfo* figure) {
  std::vector<double> out;
  for (const Run& run : runs) {
    double value = -1;
    if (figure != nullptr) {
      value = figure->value(run);
    } else {
      for (const auto& [key, number] : run.numbers) {
        if (key == name) value = number;
      }
    }
    if (value < 0) return {};
    out.push_back(value);
  }
  return out;
}

GateStatus status_of(const Judgement& j, bool more_is_better) {
  const bool worse = more_is_better ? j.ratio < 1 : j.ratio > 1;
  if (!worse) return GateStatus::kHolds;
  if (j.outcome == Outcome::kSame) return GateStatus::kHolds;
  return j.outcome == Outcome::kInconclusive ? GateStatus::kInconclusive : GateStatus::kBroken;
}

// Does not vary by chance, so that one run is as good as many.
bool is_counted(Unit unit) { return unit == Unit::kCount || unit == Unit::kBytes; }

void judge_relative(const std::vector<double>& was, const std::vector<double>& is, double limit, bool more_is_better,
                    double alpha, GateRow& row) {
  row.judged = judge(was, is, {.alpha = alpha, .threshold = limit});
  if (row.judged.method == Method::kNone && is_counted(row.unit)) {
    const bool worse = more_is_better ? row.judged.ratio < 1 - limit : row.judged.ratio > 1 + limit;
    row.status = worse ? GateStatus::kBroken : GateStatus::kHolds;
    return;
  }
  row.status = status_of(row.judged, more_is_better);
  // Too few runs: what is better than the baseline is not proven to be as good.
  if (row.judged.method == Method::kNone && !std::isinf(row.judged.ratio)) row.status = GateStatus::kInconclusive;
}

Result<GateRow> judge_limit(const Limit& limit, const std::vector<Run>& baseline, const std::vector<Run>& candidate,
                            double alpha) {
  const FigureInfo* figure = find_figure(limit.figure);
  GateRow row{.figure = limit.figure,
              .label = figure == nullptr ? limit.figure : std::string(figure->label),
              .unit = figure == nullptr ? Unit::kCount : figure->unit,
              .limit = limit.text};
  FL_TRY(const ParsedLimit parsed, parse_limit(limit, row.unit));
  const std::vector<double> was = values_of_limit(baseline, limit.figure, figure);
  const std::vector<double> is = values_of_limit(candidate, limit.figure, figure);
  const bool more_is_better = figure != nullptr && figure->more_is_better;
  if (is.empty() || (parsed.relative && was.empty())) {
    const bool known_name = figure != nullptr || std::any_of(candidate.begin(), candidate.end(), [&](const Run& run) {
                              return std::any_of(run.numbers.begin(), run.numbers.end(),
                                                 [&](const auto& n) { return n.first == limit.figure; });
                            });
    if (!known_name && is.empty()) {
      std::string names;
      for (const FigureInfo& each : all_figures()) names += std::string(each.name) + ", ";
      return Error{"limit '" + limit.figure + "': no such figure; there are " + names + "kernel_groups and sql names"};
    }
    row.detail = is.empty() ? "not measured in the new runs" : "not measured in the baseline";
    return row;
  }
  if (parsed.relative) {
    judge_relative(was, is, parsed.value, more_is_better, alpha, row);
    return row;
  }
  row.judged = judge(was.empty() ? is : was, is, {.alpha = alpha});
  const bool broken = more_is_better ? mean(is) < parsed.value : mean(is) > parsed.value;
  row.status = broken ? GateStatus::kBroken : GateStatus::kHolds;
  return row;
}

using GroupTimes = std::map<std::pair<std::string, std::string>, std::vector<double>>;

void add_times(const std::vector<Run>& runs, size_t first, size_t all, GroupTimes& out) {
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const WorkGroup& group : runs[i].work) {
      if (group.kernel.empty() || group.kernel.starts_with("(")) continue;
      std::vector<double>& times = out[{group.op, group.kernel}];
      times.resize(all, 0);
      times[first + i] += group.total_ns;
    }
  }
}

// The time of each kernel of an op on both sides, tested together: Holm's correction keeps the chance of any false
// alarm at alpha.
Result<GateRow> judge_kernels(const Limit& limit, const std::vector<Run>& baseline, const std::vector<Run>& candidate,
                              double alpha) {
  GateRow row{.figure = limit.figure, .label = "Kernel groups", .unit = Unit::kNs, .limit = limit.text};
  FL_TRY(const ParsedLimit parsed, parse_limit(limit, Unit::kNs));
  if (!parsed.relative) return Error{"limit of kernel_groups: write percent, as 10%"};
  GroupTimes times;
  const size_t all = baseline.size() + candidate.size();
  add_times(baseline, 0, all, times);
  add_times(candidate, baseline.size(), all, times);
  double gpu_ns = 0;
  for (const Run& run : baseline) gpu_ns += static_cast<double>(run.gpu_ns) / static_cast<double>(baseline.size());
  // Kernels on one side only are new or gone, which gpu_time answers for; tiny ones say nothing.
  constexpr double kLeastShare = 0.01;
  std::vector<double> p_values;
  std::vector<std::pair<std::string, Judgement>> judged;
  for (const auto& [name, values] : times) {
    const std::span<const double> both(values);
    const auto was = both.first(baseline.size());
    const auto is = both.subspan(baseline.size());
    if (mean(was) < kLeastShare * gpu_ns || mean(is) <= 0) continue;
    const std::string kernel =
        name.second.size() <= kLongestName ? name.second : name.second.substr(0, kLongestName) + "...";
    judged.emplace_back(name.first.empty() ? kernel : name.first + ": " + kernel,
                        judge(was, is, {.alpha = alpha, .threshold = parsed.value, .with_range = false}));
    p_values.push_back(judged.back().second.p);
  }
  if (judged.empty()) {
    row.detail = "no kernels on both sides";
    return row;
  }
  const std::vector<double> corrected = holm(p_values);
  row.status = GateStatus::kHolds;
  const Judgement* worst = nullptr;
  for (size_t i = 0; i < judged.size(); ++i) {
    Judgement& j = judged[i].second;
    if (j.method == Method::kNone) row.status = GateStatus::kInconclusive;
    const bool shown = worst == nullptr || j.ratio > worst->ratio;
    j.p = j.method == Method::kNone ? 1 : corrected[i];
    if (j.ratio >= 1 + parsed.value && j.p <= alpha) row.status = GateStatus::kBroken;
    if (shown) {
      worst = &j;
      row.detail = judged[i].first;
    }
  }
  row.judged = *worst;
  return row;
}

}  // namespace

std::string_view name_of(GateStatus status) {
  static constexpr std::array<std::string_view, 4> kNames = {"holds", "does not hold", "inconclusive", "not known"};
  return kNames[static_cast<size_t>(status)];
}

int GateResult::exit_code() const { return status == GateStatus::kHolds ? 0 : status == GateStatus::kBroken ? 3 : 4; }

Result<GateResult> gate(const std::vector<Run>& baseline, const std::vector<Run>& candidate,
                        const GateOptions& options) {
  GateResult out{.baseline_runs = baseline.size()};
  std::vector<double> history;
  for (const Run& run : baseline) history.push_back(static_cast<double>(run.step_ns));
  if (history.size() >= kLeastHistory) out.changes = change_points(history, options.alpha);
  const size_t first = out.changes.empty() ? 0 : out.changes.back().index;
  const std::vector<Run> recent(baseline.begin() + static_cast<std::ptrdiff_t>(first), baseline.end());
  out.baseline_used = recent.size();
  bool any_broken = false;
  bool any_open = false;
  bool any_known = false;
  for (const Limit& limit : options.limits.empty() ? default_limits() : options.limits) {
    FL_TRY(GateRow row, limit.figure == kKernelGroups ? judge_kernels(limit, recent, candidate, options.alpha)
                                                      : judge_limit(limit, recent, candidate, options.alpha));
    any_broken = any_broken || row.status == GateStatus::kBroken;
    any_open = any_open || row.status == GateStatus::kInconclusive;
    any_known = any_known || row.status != GateStatus::kNotKnown;
    // A limit that the user named and nobody can judge must not pass in silence.
    if (row.status == GateStatus::kNotKnown && !options.limits.empty()) any_open = true;
    out.rows.push_back(std::move(row));
  }
  out.status = any_broken               ? GateStatus::kBroken
               : any_open || !any_known ? GateStatus::kInconclusive
                                        : GateStatus::kHolds;
  out.difference = compare_sides(recent, candidate, {.alpha = options.alpha});
  return out;
}

}  // namespace firelane::compare
