// A job with everything that its answer was made from, for those who ask about pieces of it: the viewer's heat map,
// timeline and collectives (ranks/seen), exports on one time axis.
//
//   auto intake = std::make_shared<Intake>();
//   for (...) intake->add(part);
//   FL_TRY(const auto job, study_job(intake));
//   job->result;   // what reduce() gives
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/flight_log.h"
#include "ranks/reduce/critical_path.h"
#include "ranks/reduce/reduce.h"
#include "ranks/reduce/waits.h"

namespace firelane::ranks {

struct StudiedJob {
  explicit StudiedJob(std::shared_ptr<Intake> the_intake) : owner(std::move(the_intake)), intake(*owner) {}
  StudiedJob(const StudiedJob&) = delete;
  StudiedJob& operator=(const StudiedJob&) = delete;

  // Fills what follows. Call once; study_job() does.
  Result<void> study(std::span<const FlightLog> dumps = {});

  std::shared_ptr<Intake> owner;
  Intake& intake;
  Reduction result;
  Matches matches;
  std::vector<GroupKind> kinds;  // by group
  JobReplay replay{.intake = intake, .matches = matches, .clocks = result.clocks};
  Waits waits;
  std::vector<PathPiece> path;  // the critical path, in order of time

  // A time of the clock of a rank's host (as in its rows) on the common axis.
  int64_t aligned(uint32_t rank, int64_t row_ns) const {
    return result.clocks.aligned(intake.ranks[rank].domain, row_ns);
  }
  // Since when times of rows count on that clock, seen from the start of the rank's trace.
  int64_t row_shift_ns(uint32_t rank) const {
    return intake.has_unix_times ? intake.ranks[rank].part.unix_start_ns - intake.base_unix_ns : 0;
  }
  // A moment of the common axis in the rank's own trace, and back.
  int64_t in_trace(uint32_t rank, int64_t axis_ns) const;
  int64_t on_axis(uint32_t rank, int64_t trace_ns) const { return aligned(rank, trace_ns + row_shift_ns(rank)); }
};

// Fails as reduce() does. `dumps`: what flight recorders of the same job held.
Result<std::shared_ptr<const StudiedJob>> study_job(std::shared_ptr<Intake> intake,
                                                    std::span<const FlightLog> dumps = {});

}  // namespace firelane::ranks
