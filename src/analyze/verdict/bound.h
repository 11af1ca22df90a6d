// What limits a program, a step, a phase, a module or an operator, with the numbers that decide.
//
// The program and its steps are judged by the critical path of the replay with recording undone:
// the class with at least half of it, and clearly more than the next, is the limit; else it is
// mixed. The host's part counts only as far as the device idles: where both take about as long,
// neither alone is the limit. Phases, modules and operators are judged by their host time against
// the device time they launch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/compute/roofline.h"
#include "analyze/graph/critical_path.h"
#include "analyze/steps/find_steps.h"
#include "model/model.h"

namespace firelane::analyze {

enum class Limit : uint8_t { kOverhead, kCompute, kMemory, kInput, kCommunication, kMixed, kUnknown };
inline constexpr size_t kLimitCount = 5;  // those that have a share: mixed and unknown have none
std::string_view name_of(Limit limit);    // "overhead", "compute", ...
std::string_view label_of(Limit limit);   // for people: "overhead-bound", "mixed", "unknown"
// Why, as the end of a sentence: "the host cannot feed the device fast enough". Without a device it is about the CPU.
std::string_view reason_for(Limit limit, bool has_device_work);

struct Bound {
  Limit limit = Limit::kUnknown;
  std::array<double, kLimitCount> shares{};  // of the critical path, 0..1; what is missing to 1 is unknown
  double device_busy = 0;                    // share of the time in which some stream worked, 0..1
};

// Kernels that multiply matrices, convolve or attend are limited by computing, all others by memory:
// a guess by name, for work whose shapes or device are not known.
bool is_matrix_kernel(std::string_view name);

// For each row of device_slices whether computing or memory limits it: by the longer of its roofs, else by its name.
std::vector<Limit> work_limits(const Model& model, const Roofline& roofline);

// When some stream worked, on the clock of `played`.
IntervalSet device_busy(const Graph& graph, const Replay& played);

class BoundJudge {
 public:
  // `limits` as work_limits() gives it, and kept by the caller. `computing_share`: of the host's time, input left out,
  // in which operators compute themselves (analyze/host/dispatch.h); 0 when there is a device.
  BoundJudge(const std::vector<Limit>& limits, double computing_share)
      : limits_(limits), computing_share_(computing_share) {}

  // For the part of the path in [start, end), on the replay's clock, as is `busy`.
  Bound of(const CriticalPath& path, const IntervalSet& busy, int64_t start_ns, int64_t end_ns) const;

 private:
  const std::vector<Limit>& limits_;
  double computing_share_;
};

// For a group whose host takes `host_ns` (waiting left out) to launch `device_ns` of work, `compute_ns` of which is
// limited by computing. Overhead or not is decided by the longer of the two; within a quarter of each other: mixed.
Limit group_limit(int64_t host_ns, int64_t device_ns, int64_t compute_ns);

}  // namespace firelane::analyze
