// What limits a program, a step, a phase or an operator, with the numbers that decide.
//
// The program and its steps are judged by the critical path of the replay with recording undone:
// the class with at least half of it, and clearly more than the next, is the limit; else it is
// mixed. Phases and operators are judged by their host time against the device time they launch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/critical_path.h"
#include "analyze/find_steps.h"
#include "model/model.h"

namespace firelane {

enum class Limit : uint8_t { kOverhead, kCompute, kMemory, kInput, kCommunication, kMixed, kUnknown };
inline constexpr size_t kLimitCount = 5;  // those that have a share: mixed and unknown have none
std::string_view name_of(Limit limit);    // "overhead", "compute", ...
std::string_view words_for(Limit limit);  // for people, one line

struct Bound {
  Limit limit = Limit::kUnknown;
  std::array<double, kLimitCount> shares{};  // of the critical path, 0..1; what is missing to 1 is unknown
};

// Kernels that multiply matrices, convolve or attend are limited by computing, all others by memory:
// a guess by name, for want of counters.
bool is_matrix_kernel(std::string_view name);

// Of the part of the path in [start, end), on the replay's clock. `computing_share`: of the host's time, input left
// out, in which operators compute themselves (analyze/dispatch.h); 0 when there is a device.
Bound bound_of(const Model& model, const CriticalPath& path, int64_t start_ns, int64_t end_ns, double computing_share);

struct GroupBound {  // an operator or a phase
  StringId name = kNoString;
  int64_t calls = 0;
  int64_t host_ns = 0;    // time on its thread, waiting for the device left out
  int64_t device_ns = 0;  // of the work it launched, each moment of each stream
  Limit limit = Limit::kUnknown;
};

// Outermost operators by name / annotations by name, in the window; most time (the larger of both) first.
std::vector<GroupBound> operator_bounds(const Model& model, const Interval& window);
std::vector<GroupBound> phase_bounds(const Model& model, const HostTime& host, const Interval& window);

}  // namespace firelane
