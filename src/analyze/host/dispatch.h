// On a trace without a device: how much of the host's time is the price of calling operators, and how much is work.
//
// An operator's own time up to kDispatchNs is dispatch; what it takes beyond computes. Time between operators, in
// stretches of up to kBetweenOpsNs, is Python on its way to the next one; what a stretch takes beyond that is other
// code.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/host/host_time.h"
#include "model/model.h"

namespace firelane::analyze {

inline constexpr int64_t kDispatchNs = 5'000;
inline constexpr int64_t kBetweenOpsNs = 1'000'000;

// Whether the program is on its way between two operators: in Python, or in code that nothing recorded.
inline bool is_between_ops(Activity activity) {
  return activity == Activity::kPython || activity == Activity::kUnrecorded;
}

// A stretch of the chain in which no operator, call or pause was open.
struct CodeStretch {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Row slice = kNoRow;  // the Python function that was open longest; kNoRow: none was recorded
};
std::vector<CodeStretch> stretches_between_ops(const HostChain& chain, const Interval& window);

// By segment of the chain: which part of it is dispatch, 0..1.
std::vector<double> dispatch_shares(const Model& model, const HostChain& chain, const Interval& window);

// The part of the chain's time in the window, input left out, in which operators compute: 0..1. `dispatch`: as
// dispatch_shares() gives it.
double computing_share(const HostChain& chain, const Interval& window, const std::vector<double>& dispatch);

}  // namespace firelane::analyze
