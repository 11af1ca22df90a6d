// A stretch of a job's time as a picture: what chosen ranks did, the collectives in it, and the critical path. Answers
// are bounded by what is asked for, not by the job.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/reduce/studied_job.h"

namespace firelane::ranks {

struct AxisWindow {
  int64_t from_ns = 0;  // on the common axis
  int64_t to_ns = 0;
};

// First to last moment of all ranks whose clocks are known.
AxisWindow whole_axis(const StudiedJob& job);

// A collective of a rank: it waits until `moves_ns`, data moves until `end_ns`.
struct LanePiece {
  int64_t start_ns = 0;
  int64_t moves_ns = 0;  // = start_ns when nobody can say how long it waited
  int64_t end_ns = 0;
  uint32_t instance = kNoInstance;
  uint32_t row = 0;
};

// A stretch in which collectives are too many to be told apart.
struct LaneBin {
  int64_t wait_ns = 0;
  int64_t move_ns = 0;  // waiting or moving, where it is not known
};

struct RankLane {
  uint32_t rank = 0;              // index
  std::vector<LanePiece> pieces;  // either these
  std::vector<LaneBin> bins;      // or these, of equal width
};

struct LaneOptions {
  size_t most_pieces = 1000;  // more become bins
  size_t bins = 500;
};

RankLane rank_lane(const StudiedJob& job, uint32_t rank, const AxisWindow& window, const LaneOptions& options);

// A matched collective as a whole.
struct CollectiveSeen {
  uint32_t instance = 0;
  int64_t start_ns = 0;  // first arrival
  int64_t last_arrival_ns = 0;
  int64_t end_ns = 0;
  int64_t wait_ns = 0;     // of all its ranks
  int64_t from_rank = -1;  // that the others wait for; of a send, the sender
};
CollectiveSeen collective_seen(const StudiedJob& job, uint32_t instance);

enum class CollectiveOrder : uint8_t { kWait, kTime };
struct CollectiveList {
  size_t total = 0;  // in the window
  std::vector<CollectiveSeen> shown;
};
// Those that arrive in the window, of one group (by index) or all (-1): the `most` that cost the most waiting, or the
// first.
CollectiveList collectives_in(const StudiedJob& job, const AxisWindow& window, int64_t group, CollectiveOrder order,
                              size_t most);

// The critical path in the window. Pieces of a rank that lie together and are shorter than `least_ns` are joined.
std::vector<PathPiece> path_in(const StudiedJob& job, const AxisWindow& window, int64_t least_ns);

// The ranks (indices) that one looks at first: those that the critical path runs through for longest, stragglers, and
// the one that waited the most.
std::vector<uint32_t> telling_ranks(const StudiedJob& job, size_t most);

}  // namespace firelane::ranks
