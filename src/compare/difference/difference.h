// What changed between two sides, each of one run or several, and why.
//
//   const Difference d = compare_sides({summarize(a1), summarize(a2)}, {summarize(b1), summarize(b2)});
//   d.step.ratio, d.reasons[0].text
//
// Parts of a step add up to the difference exactly: both sides' do to their steps. Work, places and findings say where
// a part comes from. When the batch size differs, everything of the second side is that of as many samples as the first
// side's step has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/difference/match.h"
#include "compare/run/run.h"
#include "compare/statistics/judge.h"

namespace firelane::compare {

struct PartChange {
  Part part = Part::kUneven;
  int64_t before_ns = 0;
  int64_t after_ns = 0;
  int64_t change_ns() const { return after_ns - before_ns; }
};

// Work that changed alike in all its places.
struct WorkChange {
  Part part = Part::kOtherKernels;
  Change change = Change::kNone;
  std::string op;             // from the second side, otherwise from the first
  std::string kernel_before;  // "" when it is new, or for ops
  std::string kernel_after;
  std::string dims_before, dims_after;            // of one place
  std::string precision_before, precision_after;  // "" not known
  std::string module;                             // of the place that changed most; "" none
  std::string line;
  int64_t places = 0;  // groups behind it
  double calls_before = 0, calls_after = 0;
  double ns_before = 0, ns_after = 0;      // of the device (ops: of the host)
  double path_before = 0, path_after = 0;  // of it, what decides the step
  double by_calls_ns = 0;                  // of the difference: more or fewer calls of the old length
  double by_speed_ns = 0;                  // and each call's length
  double p = 1;                            // of the device time, corrected for all groups; 1 without enough runs
  double change_ns() const { return ns_after - ns_before; }
};

// All work of an operator, or in a module, per step.
struct SumChange {
  std::string name;  // "" outside of any
  double calls_before = 0, calls_after = 0;
  double before_ns = 0, after_ns = 0;  // of the device; without one, of operators on the host
  double change_ns() const { return after_ns - before_ns; }
};

struct PlaceChange {
  Part part = Part::kBetweenOps;
  std::string op;
  std::string line;
  double before_ns = 0, after_ns = 0;
};

// A figure of the run: launches, peak memory, ...
enum class Unit : uint8_t { kNs, kBytes, kCount, kPercent, kPerSecond, kJoules };
struct FigureChange {
  std::string name;   // "launches"
  std::string label;  // "Launches"
  Unit unit = Unit::kCount;
  Judgement judged;
};

struct MemoryChange {
  analyze::MemoryCategory category{};
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

struct SyncChange {
  std::string reason, op, line;
  double calls_before = 0, calls_after = 0;
  double ns_before = 0, ns_after = 0;
};

struct FindingChange {
  std::string id, title;
  bool appeared = false;
  int64_t gain_ns = 0;
};

struct SettingChange {
  std::string name, before, after;  // "" where the side does not say
};

// Why the step changed: the largest first.
struct Reason {
  std::string text;
  int64_t change_ns = 0;  // of the step; 0 when it is not about time
};

struct Difference {
  int64_t runs_before = 0, runs_after = 0;
  Judgement step;
  // One run a side: how much the median may be off by the steps of that run alone. Other runs may vary more.
  bool within_run_only = false;
  Judgement gpu;  // time of kernels and copies
  bool has_device_work = false;
  double samples_before = 0, samples_after = 0;  // per step; 0 not known
  double batch_ratio = 1;                        // of the batch sizes; figures of the second side are divided by it
  std::vector<PartChange> parts;                 // largest change first
  std::vector<WorkChange> work;                  // largest change of the step first, then of the device's time
  std::vector<SumChange> ops;                    // largest change first; they add up to the device's time
  std::vector<SumChange> modules;                // the same; empty where no side recorded modules
  std::vector<PlaceChange> places;
  std::vector<FigureChange> figures;
  std::vector<MemoryChange> memory;
  std::vector<SyncChange> syncs;
  std::vector<FindingChange> findings;
  std::vector<SettingChange> environment;
  std::vector<Reason> reasons;
  std::string verdict_before, verdict_after;
  std::vector<std::string> notes;  // what could not be compared, and why

  int64_t step_before_ns() const;
  int64_t step_after_ns() const;
};

// REQUIRES: at least one run a side.
Difference compare_sides(const std::vector<Run>& before, const std::vector<Run>& after,
                         const JudgeOptions& options = {});

// The mean of runs of the same program; its parts add up to the mean step.
Run combine(const std::vector<Run>& runs);

// Work that differs in `detail` alone becomes one group, without it.
void merge_work_without(std::string WorkGroup::* detail, Run& run);

// Figures of a run by name, also for gates: "step_time", "gpu_time", "peak_memory", ...
struct FigureInfo {
  std::string_view name;
  std::string_view label;
  Unit unit;
  bool more_is_better;
  double (*value)(const Run& run);  // negative: not known
};
const std::vector<FigureInfo>& all_figures();

// sums.cc
std::vector<SumChange> sums_by_op(const Run& before, const Run& after);
std::vector<SumChange> sums_by_module(const Run& before, const Run& after);

// reasons.cc
std::vector<Reason> reasons_for(const Difference& difference, const Run& before, const Run& after);

}  // namespace firelane::compare
