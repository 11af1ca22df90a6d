// How long a job would take if ranks did their work in another time: the dependencies replayed with other durations.
//
// replay_graph() takes any graph of operations; replay_job() is the same for the chains of collectives of a job,
// without building the graph: a rank works, arrives, waits until all members have arrived, and moves data. Where a rank
// computed during the collective before, its work counts from the arrival at that one, else from its end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ranks/reduce/clock.h"
#include "ranks/reduce/match.h"

namespace firelane::ranks {

// ---- any graph ------------------------------------------------------------------------------------------------------

inline constexpr uint32_t kNoSync = UINT32_MAX;

struct ReplayOp {
  uint32_t kind = 0;            // operations of a kind are alike: the ideal is the same for all
  uint32_t sync = kNoSync;      // those of one number begin to move when the last has begun
  bool communicates = false;    // its ideal is the median of its kind, else the mean
  std::vector<uint32_t> after;  // operations that must have ended
};

// When each operation ends; -1 for those in a circle. `durations`: of one that synchronizes, from the last start on.
std::vector<double> replay_graph(std::span<const ReplayOp> ops, std::span<const double> durations);

// The durations that every operation would have were all of its kind alike.
std::vector<double> ideal_durations(std::span<const ReplayOp> ops, std::span<const double> durations);

// ---- the collectives of a job ---------------------------------------------------------------------------------------

// What a member does before it arrives.
struct MemberWork {
  int64_t work_ns : 63 = 0;
  bool from_arrival : 1 = false;  // counts from the arrival at the collective before, which it overlaps
};
MemberWork work_before(const std::vector<CollectiveRow>& rows, uint32_t row);

struct JobReplay {
  const Intake& intake;
  const Matches& matches;
  const Clocks& clocks;
  // By row of Matches::members, of what synchronizes: work_before() of its row.
  std::vector<MemberWork> work;
  std::vector<uint32_t> order;          // instances that synchronize, in order of their last arrival
  std::vector<int64_t> transfer_ns;     // by instance: from the last arrival to the end; -1: it does not synchronize
  std::vector<int64_t> mean_work_ns;    // by instance, over its members
  std::vector<int64_t> median_work_ns;  // of two, the shorter

  enum class Work : uint8_t { kRecorded, kMean, kMedian };
  // What is different from the recording.
  struct Change {
    std::vector<Work> own;                 // by rank: which work it does; empty: as recorded
    std::vector<double> work_factor;       // by rank: its work takes so many times as long; empty: 1
    std::span<const int64_t> transfer_ns;  // by instance; empty: as recorded
    bool overlap = false;                  // ranks work on while data moves
    size_t instances = SIZE_MAX;           // only so many of `order`
  };
  // From the end of the first instance to that of the last.
  double run(const Change& change) const;
  double run(const std::vector<Work>& own) const { return run(Change{.own = own}); }
  void fetch_ahead(size_t place) const;
};

}  // namespace firelane::ranks
