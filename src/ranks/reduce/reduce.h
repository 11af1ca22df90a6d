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
};

// Collectives of one kind, size and kind of group.
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
  double imbalance = 0;  // all_to_all: most bytes of a rank divided by the average, on average; 0 not known
};

struct Straggler {
  int64_t rank = -1;
  std::string host;
  bool whole_host = false;  // the other ranks of its host are late as well
  int64_t steps_late = 0;   // steps in which it was the latest of its group, by its own work
  int64_t steps = 0;
  int64_t late_ns = 0;  // per step: how much later than the others it arrived, by its own work
  int64_t gain_ns = 0;  // per step: what the job would save if it were as fast as the others, by replay
  double gain_percent = 0;
  Cause cause = Cause::kUnknown;
  std::string why;            // one sentence with numbers
  std::string kernel;         // of slower kernels: the one that adds the most
  int64_t first_late_ns = 0;  // where to look: start of its latest arrival in its trace
  int64_t waiting_ranks = 0;
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
  double memory_imbalance = 0;        // most peak memory of a rank divided by the average; 0 not known
  int64_t memory_peak_rank = -1;
  double expert_imbalance = 0;  // all_to_all bytes: most divided by the average
  std::vector<std::string> notes;

  double matched_share() const { return rows == 0 ? 0 : static_cast<double>(matched_rows) / static_cast<double>(rows); }
};

// Fails for parts that cannot be of one job: a rank twice, different world sizes, none at all.
Result<Reduction> reduce(Intake& intake);

}  // namespace firelane::ranks
