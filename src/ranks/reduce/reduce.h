// Many parts become one answer: how well a job scales, who was late, why, and what it cost. Pure functions.
//
//   Intake intake;
//   for (...) intake.add(part);
//   FL_TRY(const Reduction job, reduce(intake));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flight/hangs.h"
#include "ranks/reduce/clock.h"
#include "ranks/reduce/match.h"
#include "ranks/reduce/rows.h"

namespace firelane::ranks {

// What a group is for.
enum class GroupKind : uint8_t { kUnknown, kWorld, kData, kTensor, kPipeline, kExpert };
std::string_view name_of(GroupKind kind);  // "data parallel"

// Why a rank was late.
enum class Cause : uint8_t {
  kUnknown,
  kMoreWork,
  kSlowerKernels,
  kInput,
  kGc,
  kAllocation,
  kSync,
  kHost,
  kCopies,
  kCheckpoint,
};
std::string_view name_of(Cause cause);  // "more work"

// Time of a rank's steps by what it did, per step; the first seven add up to the step.
struct RankTime {
  int64_t step_ns = 0;
  int64_t compute_ns = 0;
  int64_t wait_ns = 0;       // for other ranks, while nothing computed
  int64_t transfer_ns = 0;   // collectives moving data, while nothing computed
  int64_t unmatched_ns = 0;  // collectives of which waiting and moving cannot be told apart, while nothing computed
  int64_t copy_ns = 0;
  int64_t input_ns = 0;
  int64_t host_ns = 0;  // everything else that the host did while the device was idle
};

struct RankResult {
  int64_t rank = -1;
  std::string host;
  std::string device;
  std::string path;
  int64_t steps = 0;
  RankTime time;
  int64_t collectives = 0;
  int64_t matched = 0;
  int64_t waited_ns = 0;        // in all collectives, hidden or not; over the recording
  int64_t late_ns = 0;          // how long it kept others waiting by its own work; over the recording
  int64_t passed_on_ns = 0;     // how long it kept others waiting because it had been kept waiting itself
  int64_t last_count = 0;       // collectives in which it arrived last
  double overlap_percent = -1;  // of its collectives' time, hidden by computing
  double slowdown = -1;         // S_w: the job with only this rank's work as recorded, divided by the even job; -1: not
                                // among the ranks that were tried
  int64_t peak_bytes = -1;
};

struct GroupResult {
  GroupKind kind = GroupKind::kUnknown;
  std::string description;
  std::vector<int64_t> ranks;
  int64_t size = 0;     // 0 not known
  int64_t present = 0;  // ranks whose traces are there
  GroupMatch match;
  int64_t wait_ns = 0;  // of all its ranks
  int64_t transfer_ns = 0;
  int64_t exposed_ns = 0;  // waiting and moving per step and rank, while nothing computed
};

// Collectives of one kind, size and kind of group.
// What a group's ranks are connected by.
enum class Link : uint8_t { kUnknown, kInHost, kBetweenHosts };
std::string_view name_of(Link link);  // "in host"

struct CollectiveResult {
  GroupKind kind = GroupKind::kUnknown;
  Collective op = Collective::kUnknown;
  std::string dtype;
  int64_t ranks = 0;
  int64_t bytes = 0;  // of the whole buffer; 0 not known
  int64_t count = 0;
  int64_t wait_ns = 0;      // median of the average wait of its ranks
  int64_t transfer_ns = 0;  // median
  double algorithm_gb_s = 0;
  double bus_gb_s = 0;
  Link link = Link::kUnknown;
  double link_gb_s = 0;  // its peak, one way, as far as the device's name tells; 0 not known
  double imbalance = 0;  // all_to_all: most bytes of a rank divided by the average, on average; 0 not known
};

struct Straggler {
  int64_t rank = -1;
  std::string host;
  bool whole_host = false;  // the other ranks of its host are late as well
  int64_t steps_late = 0;   // steps in which it was the latest of its group, by its own work
  int64_t steps = 0;
  int64_t late_ns = 0;             // per step: how much later than the others it arrived, by its own work
  std::vector<int64_t> few_steps;  // the numbers of those that have most of it, where these are few; else none
  int64_t gain_ns = 0;             // per step: what the job would save if it were as fast as the others, by replay
  double gain_percent = 0;
  Cause cause = Cause::kUnknown;
  std::string why;            // one sentence with numbers
  std::string kernel;         // of slower kernels: the one that adds the most
  int64_t first_late_ns = 0;  // where to look: start of its latest arrival in its trace
  int64_t waiting_ranks = 0;
  int64_t stage = -1;      // of the pipeline
  double probability = 1;  // that equal ranks look like this
};

struct Scaling {
  double recorded_ns = 0;  // first to last collective that synchronizes
  double replayed_ns = 0;
  double ideal_ns = 0;     // all ranks do the same work
  double slowdown = 1;     // S = replayed / ideal
  double worst_share = 0;  // M_W: of the slowdown, what the worst 3% of ranks explain
  int64_t worst_ranks = 0;
  double lost_gpu_seconds = 0;  // over the recording, of all ranks that are there
  double lost_share = 0;        // of all GPU time
};

// A step that all ranks recorded.
struct StepResult {
  int64_t number = 0;
  int64_t step_ns = 0;  // average of the ranks
  int64_t wait_ns = 0;  // for others, hidden or not: average of the ranks
  int64_t latest_rank = -1;
  int64_t late_ns = 0;  // how long that one kept others waiting, by its own work
};

// A type of work: the job with only its durations as recorded, divided by the job in which everything is even.
struct TypeSlowdown {
  std::string type;     // "computing", "all_reduce"
  double slowdown = 1;  // S_t
};

// How long the job would take were something different, by replay.
struct WhatIf {
  std::string id;       // "perfect-overlap"
  std::string what;     // "all collectives are hidden by computing"
  int64_t gain_ns = 0;  // per step
  double gain_percent = 0;
};

struct PipelineStage {
  std::vector<int64_t> ranks;
  int64_t work_ns = 0;    // per step and rank: before its collectives
  int64_t bubble_ns = 0;  // per step and rank: waiting for other stages, in receives and in collectives of several
};

struct Pipeline {
  std::vector<PipelineStage> stages;  // empty: no pipeline
  int64_t micro_batches = 0;          // per step; 0 not known
  std::string schedule;               // "1F1B", "GPipe", "interleaved 1F1B", "forward only"; "" not known
  double bubble_percent = 0;          // of the step, average of the stages
  double least_percent = -1;          // what such a schedule cannot avoid: (p - 1) / (m + p - 1); -1 not known
  double last_stage_share = -1;       // M_S: of what uneven work costs, what the last stage explains; -1 not known
};

// Share of the critical path of one rank, or of one kind of collective.
struct PathShare {
  int64_t rank = -1;  // that the path runs through
  std::string what;   // "computing", "moving", "waiting or moving", "idle: DataLoader"
  std::string name;   // kernel, or collective and its group
  std::string op;     // that launches the kernel; "" not known
  std::string module;
  std::string line;
  int64_t time_ns = 0;  // over the recording
  int64_t pieces = 0;
};

// Where the user's code calls a collective, as flight recorders say.
struct CallPlace {
  std::string collective;
  std::string group;
  std::string place;  // "train.py(41): step"
  int64_t calls = 0;
};

// What the dumps of flight recorders add. No dumps: nothing.
struct FlightJoin {
  flight::HangReport hangs;
  int64_t ranks_with_both = 0;       // a trace and a dump
  int64_t in_both = 0;               // collectives that the trace and the dump of a rank have, by sequence number
  std::vector<std::string> history;  // of each culprit: what the recorded steps say about it
  std::vector<CallPlace> places;     // most calls first
};

struct Reduction {
  int64_t ranks = 0;
  int64_t world_size = 0;
  int64_t hosts = 0;
  bool hosts_known = false;
  bool has_device_work = false;
  std::string device;
  int64_t steps = 0;  // that all ranks recorded
  RankTime time;      // average over ranks
  std::vector<RankResult> by_rank;
  std::vector<GroupResult> groups;
  std::vector<CollectiveResult> collectives;
  std::vector<std::string> clock_names;  // as Clocks::domains
  Clocks clocks;
  int64_t rows = 0;
  int64_t matched_rows = 0;
  int64_t instances = 0;
  std::vector<int64_t> refused = std::vector<int64_t>(kRefusalCount, 0);
  std::string first_mismatch;
  Scaling scaling;
  std::vector<Straggler> stragglers;  // most gain first; empty: nobody stands out
  std::vector<StepResult> by_step;    // in order of their numbers
  double memory_imbalance = 0;        // most peak memory of a rank divided by the average; 0 not known
  int64_t memory_peak_rank = -1;
  double expert_imbalance = 0;      // all_to_all bytes: most divided by the average
  std::vector<TypeSlowdown> types;  // most first
  std::vector<WhatIf> what_ifs;     // most gain first
  Pipeline pipeline;
  int64_t path_ns = 0;          // of the critical path across ranks
  std::vector<PathShare> path;  // adds up to path_ns, most first
  FlightJoin flight;
  std::vector<std::string> notes;

  double matched_share() const { return rows == 0 ? 0 : static_cast<double>(matched_rows) / static_cast<double>(rows); }
};

// Fails for parts that cannot be of one job: a rank twice, different world sizes, none at all.
Result<Reduction> reduce(Intake& intake);

}  // namespace firelane::ranks
