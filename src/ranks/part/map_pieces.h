// The steps of map_trace(), each in a file of its own. Private to ranks/part.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/host/host_time.h"
#include "model/model.h"
#include "ranks/part/part.h"

namespace firelane::ranks {

// Rank, world size, host, device and backend: from the trace, else from the name of its file.
void map_identity(const Model& model, Part& part);  // map_identity.cc

// Process groups as the trace names them. map_groups.cc
class GroupTable {
 public:
  GroupTable(const Model& model, Part& part);
  // The group of a row of comm_details; -1 when it says none.
  int64_t group_of(Row comm);
  // Global rank of a member; -1 when the group's ranks are not known.
  int64_t global_rank(int64_t group, int64_t index) const;

 private:
  const Model& model_;
  Part& part_;
  std::vector<PartGroup> configured_;  // pg_config of distributedInfo, in order of creation
  std::unordered_map<uint64_t, int64_t> known_;
};
// "[0, 1, ..., 255]" and "[0, 1]": the numbers, and whether some were left out.
std::vector<int64_t> parse_ranks(std::string_view text, bool& is_cut);

// A collective as it was found: on the device, or in a thread of a CPU backend.
struct FoundCollective {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t stream = 0;
  Row row = kNoRow;   // of device_slices or host_slices
  Row comm = kNoRow;  // comm_details
  Row op = kNoRow;    // host slice that asked for it
  Collective kind = Collective::kUnknown;
  Source source = Source::kName;
};
std::vector<FoundCollective> find_collectives(const Model& model, bool on_device);  // map_collectives.cc
// Fills the columns that do not need the time line.
void map_collectives(const Model& model, const std::vector<FoundCollective>& found, Part& part);

// What a rank did at each moment: computing, copying, collectives, and the host while the device did nothing.
struct TimeLine {
  analyze::IntervalSet compute;
  analyze::IntervalSet collectives;
  analyze::IntervalSet checkpoints;  // being written, without what the two above cover
  analyze::IntervalSet copies;       // without what the three above cover
  analyze::IntervalSet busy;         // all of them
  // Kernels (without a device: operators) in order of their start, summed up.
  std::vector<int64_t> work_start_ns;
  std::vector<int64_t> work_before;  // work_before[i]: of the first i
  std::vector<int64_t> work_ns;      // how long each took
  std::vector<int32_t> work_kernel;  // index in Part::kernels; -1: not among them
};

// The host's time by what it was doing.
struct HostParts {
  int64_t input_ns = 0, gc_ns = 0, allocation_ns = 0, sync_ns = 0, host_ns = 0;
};
// The parts of [start, end) in which nothing of `busy` ran.
HostParts idle_parts(const analyze::HostTime& host, const analyze::IntervalSet& busy, int64_t start_ns, int64_t end_ns);

// When the leading thread writes a checkpoint: torch.save() and what is around it.
std::vector<analyze::Interval> find_checkpoints(const Model& model,
                                                const analyze::HostTime& host);  // map_checkpoints.cc

// Clocks, power and temperature while the steps ran.
void map_device_state(const Model& model, Part& part);  // map_device_state.cc

TimeLine time_line(const Model& model, const analyze::HostTime& host, const std::vector<FoundCollective>& found,
                   bool on_device, Part& part);                                      // map_time_line.cc
void map_segments(const analyze::HostTime& host, const TimeLine& line, Part& part);  // map.cc
void map_steps(const Model& model, const analyze::HostTime& host, const TimeLine& line, Part& part);  // map.cc

}  // namespace firelane::ranks
