#include "compare/difference/difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "compare/difference/work.h"

namespace firelane::compare {

namespace {

std::vector<double> values_of(const std::vector<Run>& runs, const FigureInfo& figure) {
  std::vector<double> out;
  for (const Run& run : runs) {
    const double value = figure.value(run);
    if (value < 0) return {};
    out.push_back(value);
  }
  return out;
}

bool grows_with_batch(Unit unit) { return unit == Unit::kNs || unit == Unit::kJoules; }

std::vector<FigureChange> figure_changes(const std::vector<Run>& before, const std::vector<Run>& after,
                                         double batch_ratio, const JudgeOptions& options) {
  std::vector<FigureChange> out;
  for (const FigureInfo& figure : all_figures()) {
    const std::vector<double> was = values_of(before, figure);
    std::vector<double> is = values_of(after, figure);
    if (was.empty() || is.empty()) continue;
    if (grows_with_batch(figure.unit)) {
      for (double& value : is) value /= batch_ratio;
    }
    out.push_back({std::string(figure.name), std::string(figure.label), figure.unit, judge(was, is, options)});
  }
  return out;
}

// The second side's figures for as many samples as the first side's step has; parts still add up.
Run for_as_many_samples(Run run, double ratio) {
  if (ratio == 1) return run;
  const auto scaled = [&](int64_t ns) { return std::llround(static_cast<double>(ns) / ratio); };
  run.step_ns = scaled(run.step_ns);
  int64_t given = 0;
  for (int64_t& part : run.parts) {
    part = scaled(part);
    given += part;
  }
  run.parts[static_cast<size_t>(Part::kUneven)] += run.step_ns - given;
  for (WorkGroup& group : run.work) {
    group.total_ns /= ratio;
    group.path_ns /= ratio;
  }
  for (HostPlace& place : run.places) place.ns /= ratio;
  for (SyncPlace& place : run.sync_places) place.ns /= ratio;
  run.gpu_ns = scaled(run.gpu_ns);
  return run;
}

std::vector<PartChange> part_changes(const Run& before, const Run& after) {
  std::vector<PartChange> out;
  int64_t sum = 0;
  for (size_t i = 0; i < kPartCount; ++i) {
    out.push_back({static_cast<Part>(i), before.parts[i], after.parts[i]});
    sum += out.back().change_ns();
  }
  FL_CHECK(sum == after.step_ns - before.step_ns, "compare_sides: parts must add up to the difference");
  std::erase_if(out, [](const PartChange& part) { return part.before_ns == 0 && part.after_ns == 0; });
  std::stable_sort(out.begin(), out.end(), [](const PartChange& a, const PartChange& b) {
    return std::abs(a.change_ns()) > std::abs(b.change_ns());
  });
  return out;
}

std::vector<PlaceChange> place_changes(const Run& before, const Run& after) {
  std::map<std::tuple<Part, std::string, std::string>, PlaceChange> all;
  const auto at = [&](const HostPlace& place) -> PlaceChange& {
    return all.try_emplace({place.part, place.op, place.line}, PlaceChange{place.part, place.op, place.line})
        .first->second;
  };
  for (const HostPlace& place : before.places) at(place).before_ns += place.ns;
  for (const HostPlace& place : after.places) at(place).after_ns += place.ns;
  std::vector<PlaceChange> out;
  for (auto& [key, change] : all) out.push_back(std::move(change));
  std::stable_sort(out.begin(), out.end(), [](const PlaceChange& a, const PlaceChange& b) {
    return std::abs(a.after_ns - a.before_ns) > std::abs(b.after_ns - b.before_ns);
  });
  return out;
}

std::vector<SyncChange> sync_changes(const Run& before, const Run& after) {
  std::map<std::tuple<std::string, std::string, std::string>, SyncChange> all;
  const auto at = [&](const SyncPlace& place) -> SyncChange& {
    return all.try_emplace({place.reason, place.op, place.line}, SyncChange{place.reason, place.op, place.line})
        .first->second;
  };
  for (const SyncPlace& place : before.sync_places) {
    at(place).calls_before += place.calls;
    at(place).ns_before += place.ns;
  }
  for (const SyncPlace& place : after.sync_places) {
    at(place).calls_after += place.calls;
    at(place).ns_after += place.ns;
  }
  std::vector<SyncChange> out;
  for (auto& [key, change] : all) out.push_back(std::move(change));
  const auto moved = [](const SyncChange& c) { return std::abs(c.calls_after - c.calls_before); };
  std::stable_sort(out.begin(), out.end(),
                   [&](const SyncChange& a, const SyncChange& b) { return moved(a) > moved(b); });
  return out;
}

std::vector<FindingChange> finding_changes(const Run& before, const Run& after) {
  const auto has = [](const Run& run, const std::string& id) {
    return std::any_of(run.findings.begin(), run.findings.end(), [&](const FindingMark& f) { return f.id == id; });
  };
  std::vector<FindingChange> out;
  for (const FindingMark& finding : after.findings) {
    if (!has(before, finding.id)) out.push_back({finding.id, finding.title, true, finding.gain_ns});
  }
  for (const FindingMark& finding : before.findings) {
    if (!has(after, finding.id)) out.push_back({finding.id, finding.title, false, finding.gain_ns});
  }
  return out;
}

std::vector<SettingChange> setting_changes(const Run& before, const Run& after) {
  std::map<std::string, SettingChange> all;
  for (const auto& [name, value] : before.environment) all[name] = {name, value, ""};
  for (const auto& [name, value] : after.environment) {
    SettingChange& change = all.try_emplace(name, SettingChange{name, "", ""}).first->second;
    change.after = value;
  }
  std::vector<SettingChange> out;
  for (auto& [name, change] : all) {
    // A baseline knows its commit, a trace does not: that is no change.
    const bool is_unsaid_commit = name == "commit" && (change.before.empty() || change.after.empty());
    if (change.before != change.after && !is_unsaid_commit) out.push_back(std::move(change));
  }
  return out;
}

// One run a side: what its own steps say. That is no verdict, since other runs may vary more.
void take_range_within(const Run& before, const Run& after, double ratio, Difference& d) {
  const auto to_double = [](const std::vector<int64_t>& ns) { return std::vector<double>(ns.begin(), ns.end()); };
  constexpr size_t kFewest = 5;
  if (before.steps_ns.size() < kFewest || after.steps_ns.size() < kFewest) return;
  const Range was = median_range(to_double(before.steps_ns));
  const Range is = median_range(to_double(after.steps_ns));
  if (was.low <= 0 || was.high <= 0) return;
  d.step.range = {is.low / was.high / ratio, is.high / was.low / ratio};
  d.step.has_range = true;
  d.within_run_only = true;
}

bool has(const Run& run, std::string WorkGroup::* detail) {
  return std::any_of(run.work.begin(), run.work.end(),
                     [&](const WorkGroup& group) { return !(group.*detail).empty(); });
}

// Modules or shapes that one side alone has would split its work into groups that the other side has as one.
void match_detail(Run& first, Run& second) {
  for (std::string WorkGroup::* const detail : {&WorkGroup::module, &WorkGroup::dims, &WorkGroup::types}) {
    if (has(first, detail) == has(second, detail)) continue;
    merge_work_without(detail, first);
    merge_work_without(detail, second);
  }
}

void take_notes(const Run& before, const Run& after, Difference& d) {
  if (before.format != after.format) {
    d.notes.push_back("recorded by different profilers (" + before.format + ", " + after.format +
                      "): the cost of recording is subtracted from both");
  }
  for (const Run* side : {&before, &after}) {
    if (side->recording_estimated && before.format != after.format) {
      d.notes.push_back(side->path + ": the cost of recording is an estimate; differences below 10% may be its error");
    }
    if (side->steps_by == "whole trace") {
      d.notes.push_back(side->path + ": no steps were found, so the whole trace is compared as one step");
    }
  }
  if (before.has_device_work != after.has_device_work) {
    d.notes.push_back("only one side has device work: kernels cannot be compared");
  }
  if (has(before, &WorkGroup::dims) != has(after, &WorkGroup::dims)) {
    d.notes.push_back("shapes were recorded on one side only: changes of shapes cannot be detected");
  }
  if (has(before, &WorkGroup::module) != has(after, &WorkGroup::module)) {
    d.notes.push_back("modules were recorded on one side only: work is matched without them");
  }
  if (before.has_memory != after.has_memory) {
    d.notes.push_back("memory was recorded on one side only: it cannot be compared");
  }
}

}  // namespace

int64_t Difference::step_before_ns() const { return std::llround(step.before); }
int64_t Difference::step_after_ns() const { return std::llround(step.after); }

Difference compare_sides(const std::vector<Run>& before, const std::vector<Run>& after, const JudgeOptions& options) {
  Run first = combine(before);
  Run second_as_is = combine(after);
  Difference d{.runs_before = static_cast<int64_t>(before.size()), .runs_after = static_cast<int64_t>(after.size())};
  take_notes(first, second_as_is, d);
  match_detail(first, second_as_is);
  d.has_device_work = first.has_device_work || second_as_is.has_device_work;
  const std::vector<WorkMatch> matches = match_work(first.work, second_as_is.work);
  d.samples_before = static_cast<double>(first.samples);
  d.samples_after = static_cast<double>(second_as_is.samples);
  // A compiled program may begin with a product of matrices whose rows are tokens, not samples.
  const bool same_samples =
      first.samples > 0 && second_as_is.samples > 0 && first.samples_are == second_as_is.samples_are;
  d.batch_ratio =
      same_samples ? d.samples_after / d.samples_before : batch_ratio(first.work, second_as_is.work, matches);
  const Run second = for_as_many_samples(second_as_is, d.batch_ratio);
  d.figures = figure_changes(before, after, d.batch_ratio, options);
  for (const FigureChange& figure : d.figures) {
    if (figure.name == "step_time") d.step = figure.judged;
    if (figure.name == "gpu_time") d.gpu = figure.judged;
  }
  if (d.step.method == Method::kNone) take_range_within(first, second_as_is, d.batch_ratio, d);
  d.parts = part_changes(first, second);
  d.work = work_changes(first, second, matches);
  judge_work(before, after, d.batch_ratio, options, d.work);
  d.ops = sums_by_op(first, second);
  d.modules = sums_by_module(first, second);
  d.places = place_changes(first, second);
  d.syncs = sync_changes(first, second);
  d.findings = finding_changes(first, second);
  d.environment = setting_changes(first, second);
  if (first.has_memory && second.has_memory) {
    for (size_t i = 0; i < first.memory.size(); ++i) {
      if (first.memory[i] == 0 && second.memory[i] == 0) continue;
      d.memory.push_back({static_cast<analyze::MemoryCategory>(i), first.memory[i], second.memory[i]});
    }
  }
  d.verdict_before = first.verdict;
  d.verdict_after = second.verdict;
  d.reasons = reasons_for(d, first, second);
  return d;
}

}  // namespace firelane::compare
