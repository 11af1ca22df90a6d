// The part: what is kept of one rank's trace so that many ranks can be looked at together. Kilobytes to a few MB, in
// columns. map_trace() makes it (part/map.h), docs/ranks-part.md describes its file, reduce() reads many
// (reduce/reduce.h).
//
// Times are ns since the trace's start, `unix_start_ns` says when that was on the clock of the rank's host. A
// collective arrives when its kernel starts: from then on it waits for the other ranks. What lies before it (columns
// from `gap_ns` on) tells why it came when it came.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/values.h"

namespace firelane::ranks {

enum class Collective : uint8_t {
  kUnknown,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kSend,
  kRecv,
  kSendRecv,  // several sends and receives in one kernel
};
inline constexpr size_t kCollectiveCount = 13;
std::string_view name_of(Collective op);           // "all_reduce"
Collective collective_named(std::string_view op);  // c10d's and NCCL's spellings; kUnknown for others

// No rank ends before the last one has begun.
bool synchronizes(Collective op);
bool is_point_to_point(Collective op);
// What a rank moves over its links divided by the size of the whole buffer: NCCL's bus bandwidth.
double bus_factor(Collective op, int64_t ranks);
// 0: not known.
int64_t bytes_of_dtype(std::string_view dtype);

// Where the arguments of a collective come from.
enum class Source : uint8_t { kKernel, kOp, kName };

struct PartGroup {
  std::string name;            // may lie: see reduce/groups.h
  std::string description;     // "default_pg", "tp"
  int64_t size = 0;            // 0: not known
  std::vector<int64_t> ranks;  // global; empty: not known
  bool ranks_cut = false;      // only the first 29 and the last are known

  bool operator==(const PartGroup&) const = default;
};

// One row a collective, in order of arrival. Adding a column is one line here: file, tests and documents follow.
#define FL_PART_COLLECTIVES(COLUMN)                                                                        \
  COLUMN(group, "index in groups; -1: not known")                                                          \
  COLUMN(op, "Collective")                                                                                 \
  COLUMN(dtype, "index in dtypes; -1: not known")                                                          \
  COLUMN(sequence, "number of the collective in its group; -1: not recorded")                              \
  COLUMN(in_elements, "elements sent; -1: not known")                                                      \
  COLUMN(out_elements, "elements received; -1: not known")                                                 \
  COLUMN(peer, "global rank of the other side of a send or receive, of the root of a broadcast; -1: none") \
  COLUMN(stream, "stream, or lane of a CPU backend")                                                       \
  COLUMN(source, "Source: where the arguments come from")                                                  \
  COLUMN(step, "index in steps; -1: outside of them")                                                      \
  COLUMN(asked_ns, "when the host asked for it; -1: not recorded")                                         \
  COLUMN(start_ns, "arrival")                                                                              \
  COLUMN(end_ns, "end")                                                                                    \
  COLUMN(overlapped_ns, "of start to end, the part in which kernels of this rank computed")                \
  COLUMN(gap_ns, "from the end of the collectives before it to its arrival; 0 when they overlap")          \
  COLUMN(compute_ns, "computing since the collective before it arrived")                                   \
  COLUMN(kernels, "kernels (without a device: operators) since then")                                      \
  COLUMN(work, "threads that they launched (without a device: elements of their inputs)")                  \
  COLUMN(copy_ns, "of the gap: copies that nothing else hides")                                            \
  COLUMN(input_ns, "of the gap: the device idle, the host in the DataLoader")                              \
  COLUMN(gc_ns, "of the gap: the device idle, the host in Python's garbage collector")                     \
  COLUMN(allocation_ns, "of the gap: the device idle, the host in cudaMalloc and the like")                \
  COLUMN(sync_ns, "of the gap: the device idle, the host in calls that wait for it")                       \
  COLUMN(host_ns, "of the gap: the device idle, the host elsewhere")                                       \
  COLUMN(kernel, "index in kernels: most time since the collective before it arrived; -1: not known")      \
  COLUMN(kernel_ns, "its time since then")                                                                 \
  COLUMN(checkpoint_ns, "of the gap: a checkpoint is written, and no kernel computes; -1: not known")

struct PartCollectives {
#define FL_PART_COLUMN(name, meaning) std::vector<int64_t> name;
  FL_PART_COLLECTIVES(FL_PART_COLUMN)
#undef FL_PART_COLUMN
  size_t size() const { return start_ns.size(); }
  bool operator==(const PartCollectives&) const = default;
};

// Steps of the rank; the parts from compute_ns to host_ns and checkpoint_ns add up to the step.
#define FL_PART_STEPS(COLUMN)                                                            \
  COLUMN(number, "of the step; found ones count from 0")                                 \
  COLUMN(start_ns, "its span, see analyze/steps/step_spans.h")                           \
  COLUMN(end_ns, "")                                                                     \
  COLUMN(compute_ns, "kernels compute (without a device: operators)")                    \
  COLUMN(exposed_ns, "collectives that no computing hides, waiting for others included") \
  COLUMN(copy_ns, "copies that neither hides")                                           \
  COLUMN(input_ns, "the device idle, the host in the DataLoader")                        \
  COLUMN(gc_ns, "the device idle, the host in Python's garbage collector")               \
  COLUMN(allocation_ns, "the device idle, the host in cudaMalloc and the like")          \
  COLUMN(sync_ns, "the device idle, the host in calls that wait for it")                 \
  COLUMN(host_ns, "the device idle, the host elsewhere")                                 \
  COLUMN(communication_ns, "collectives, hidden or not; not a part of the sum")          \
  COLUMN(warm_up, "1: a leading step that is slower than the rest")                      \
  COLUMN(peak_bytes, "most memory allocated on the device in the step; -1: not known")   \
  COLUMN(checkpoint_ns, "a checkpoint is written, and no kernel computes; -1: not known")

struct PartSteps {
#define FL_PART_COLUMN(name, meaning) std::vector<int64_t> name;
  FL_PART_STEPS(FL_PART_COLUMN)
#undef FL_PART_COLUMN
  size_t size() const { return number.size(); }
  bool operator==(const PartSteps&) const = default;
};

// Compute kernels (without a device: operators) by name, most time first.
struct PartKernel {
  std::string name;
  std::string op;  // that launched it; "" not known
  int64_t calls = 0;
  int64_t total_ns = 0;
  int64_t work = 0;    // threads launched
  std::string module;  // nn.Module of its first call; "" not recorded
  std::string line;    // of the user's code that made that call: "train.py(41): step"; "" not recorded
  std::string shapes;  // of the inputs of `op` in its largest call: "[[8, 512], [512, 64]]"; "" not recorded

  bool operator==(const PartKernel&) const = default;
};

// What the device was like while the steps ran, medians of its samples; -1: not recorded.
struct PartDeviceState {
  int64_t sm_clock_mhz = -1;
  int64_t memory_clock_mhz = -1;
  int64_t power_watts = -1;
  int64_t temperature_celsius = -1;

  bool operator==(const PartDeviceState&) const = default;
};

struct Part {
  std::string path;    // of the trace
  std::string format;  // "Kineto JSON", "Firelane"
  std::string host;    // "" not known
  std::string device;  // "NVIDIA H200"; "" none
  std::string backend;
  std::string nccl_version;
  int64_t rank = -1;  // -1: not known
  int64_t world_size = 0;
  int64_t unix_start_ns = kNoNumber;
  int64_t duration_ns = 0;
  int64_t clock_grain_ns = 1;  // times are known to this much: 1,000 where a trace has whole microseconds
  bool has_device_work = false;
  bool steps_marked = false;  // their numbers are the program's own
  int64_t peak_bytes = -1;    // most memory that was allocated on the device
  int64_t reserved_bytes = -1;
  int64_t capacity_bytes = -1;
  std::vector<std::pair<std::string, int64_t>> losses;  // what the trace lacks: name of the statistic, count
  std::vector<std::string> dtypes;
  std::vector<PartGroup> groups;
  PartCollectives collectives;
  PartSteps steps;
  std::vector<PartKernel> kernels;
  PartDeviceState device_state;

  bool operator==(const Part&) const = default;
};

}  // namespace firelane::ranks
