// Where in a step the leading thread had no core: private to host_time.cc.
#pragma once

#include "analyze/host/host_time.h"

namespace firelane::analyze {

// Gives what each recorded step lost to other programs (host/core_waits.h) its place among the chain's segments, and
// returns these places.
IntervalSet lay_waits(const Model& model, HostChain& chain);

}  // namespace firelane::analyze
