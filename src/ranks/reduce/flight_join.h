// The dumps of flight recorders beside the traces of the same job: who holds up whom when it hangs, and what the
// recorded steps say about that rank. A dump knows collectives that never began or never ended, and where they were
// called; a trace knows how long everything took. Each alone is enough; ranks may lack either.
#pragma once

#include <span>

#include "model/flight_log.h"
#include "ranks/reduce/reduce.h"

namespace firelane::ranks {

// Fills `flight` of the job's result. REQUIRES: each log has a rank, and no two the same.
void join_flight(const Intake& intake, std::span<const FlightLog> logs, Reduction& job);

}  // namespace firelane::ranks
