// What the reduce keeps of each part: one row a collective with names and sizes as numbers that mean the same on all
// ranks.
//
// A group's name proves nothing: different groups may share one, and one group may be called differently on different
// ranks. So a group is its set of ranks, its description and how many of the same were created before it; where the
// list of ranks is cut, its size and the ranks that are left; and only without any ranks its name.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ranks/part/part.h"
#include "ranks/reduce/shuffle.h"

namespace firelane::ranks {

// What must agree for two collectives to be the same one.
struct Signature {
  Collective op = Collective::kUnknown;
  int64_t size_key = -1;  // elements, as far as all ranks have the same number; -1: not known
  std::string dtype;
  bool operator<(const Signature& other) const;
};

// What the host did while the device was idle before a collective.
enum class IdleKind : uint8_t { kNone, kInput, kGc, kAllocation, kSync, kHost, kCheckpoint };
std::string_view name_of(IdleKind kind);  // "DataLoader"

struct CollectiveRow {
  int64_t start_ns = 0;  // since the job's first trace began, by the clock of its host
  int64_t end_ns = 0;
  int64_t gap_ns = 0;
  int64_t overlapped_ns = 0;
  int64_t bytes = 0;  // of the whole buffer; 0 not known
  uint32_t signature = 0;
  uint32_t group = 0;
  int32_t sequence = -1;
  int32_t step = -1;      // index in the part's steps
  int32_t kernel_us = 0;  // of `kernel`, since the collective before it arrived
  int16_t kernel = -1;    // index in the part's kernels
  IdleKind idle = IdleKind::kNone;
  uint8_t idle_percent = 0;  // of the gap: the device idle, most of it for `idle`
};

// A collective as far as matching by numbers needs it.
struct GroupRow {
  uint32_t row = 0;
  uint32_t signature = 0;
  int32_t sequence = -1;
};

// What a group is used for, over the rows of all ranks.
struct GroupUse {
  int64_t rows = 0, all_to_all = 0;
};

// How a group is known, best first.
enum class GroupKnown : uint8_t { kRanks, kCutRanks, kName, kNothing };

struct JobGroup {
  std::string key;
  std::string description;
  std::string name;  // as one of the ranks calls it
  int64_t size = 0;  // 0: not known
  std::vector<int64_t> ranks;
  GroupKnown known = GroupKnown::kRanks;
  bool point_to_point = false;
  int64_t sender = -1;  // of a pair
  GroupUse use;
  std::vector<uint32_t> members;            // indices of the ranks that are there, ascending
  std::vector<std::vector<GroupRow>> rows;  // by member
};

// Sums over a rank's rows: why it arrived when it did.
struct Causes {
  int64_t compute_ns = 0, kernels = 0, work = 0, copy_ns = 0, input_ns = 0, gc_ns = 0, allocation_ns = 0, sync_ns = 0,
          host_ns = 0, checkpoint_ns = 0;
};

struct RankRows {
  Part part;  // without its collectives and groups
  std::vector<CollectiveRow> rows;
  std::vector<Causes> step_causes;    // by step; the last: outside of steps
  std::map<uint32_t, GroupUse> uses;  // by group
  uint32_t domain = 0;                // of its clock
  int64_t refused_without_group = 0;
};

// All ranks of a job, as they come in. add() may be called by several threads at once.
class Intake {
 public:
  void add(Part part);

  // Puts ranks into order, gives them their clocks and groups their members. Call once, after the last add().
  void finish();

  std::vector<RankRows> ranks;
  std::vector<Signature> signatures;
  std::vector<JobGroup> groups;
  std::vector<std::string> domains;  // name of the host, or "rank 3"
  int64_t base_unix_ns = 0;          // times of rows are since then
  bool has_unix_times = true;
  int64_t ranks_per_host = 0;  // of ranks that do not name their hosts, if somebody says so; 0: nobody does
  ShuffledMatches matched;     // by sequence numbers, elsewhere

 private:
  uint32_t signature_id(const Signature& signature);
  uint32_t group_id(const JobGroup& group);

  std::mutex mutex_;
  std::map<Signature, uint32_t> signature_ids_;
  std::unordered_map<std::string, uint32_t> group_ids_;
};

// Whether two signatures may be of one collective: arguments that went missing agree with any.
bool compatible(const Intake& intake, uint32_t a, uint32_t b);

}  // namespace firelane::ranks
