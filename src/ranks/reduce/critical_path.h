// The critical path of a job: the chain of work and transfers, from rank to rank, that decides how long it takes.
//
// It is walked backwards from the last collective: data moves from the last arrival on; the rank that arrived last did
// its own work before that, since the collective before; which had a last arrival of its own, on whatever rank. The
// pieces lie end to end, so that they add up to the path. Private to ranks/reduce, and for ranks/seen.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/reduce/reduce.h"
#include "ranks/reduce/waits.h"

namespace firelane::ranks {

enum class PathKind : uint8_t {
  kWork,       // of the rank that arrived last
  kTransfer,   // data moving in a collective
  kUnmatched,  // a collective of which waiting and moving cannot be told apart
};

struct PathPiece {
  PathKind kind = PathKind::kWork;
  uint32_t rank = 0;     // index in Intake::ranks
  uint32_t row = 0;      // of its collectives: the one that moves, or that the work leads to
  int64_t start_ns = 0;  // on the common axis
  int64_t end_ns = 0;
};

// In order of time.
std::vector<PathPiece> critical_path(const JobReplay& replay, const Waits& waits);

// Sums up what the pieces consist of: kernels, idle devices, collectives.
void add_path(const JobReplay& replay, const std::vector<GroupKind>& kinds, const std::vector<PathPiece>& pieces,
              Reduction& out);

}  // namespace firelane::ranks
