#include "import/nsight/names.h"

#include <string>

#include "import/nsight/nvtx_ranges.h"

namespace firelane::importer {

void NsightNames::read_strings() {
  database_.scan("StringIds", {"id", "value"}, part_.losses, [&](const SqlRow& row) {
    const int64_t id = row.integer(0);
    if (id == kNoNumber) return;
    const StringId text = pool_.strings.intern(row.text(1));
    // Ids count from 0, but nothing keeps a file to that.
    if (id == static_cast<int64_t>(small_strings_.size())) {
      small_strings_.push_back(text);
    } else if (id >= 0 && id < static_cast<int64_t>(small_strings_.size())) {
      small_strings_[static_cast<size_t>(id)] = text;
    } else {
      strings_[id] = text;
    }
  });
}

StringId NsightNames::string(int64_t id) {
  if (id == kNoNumber) return kNoString;
  if (id >= 0 && id < static_cast<int64_t>(small_strings_.size())) return small_strings_[static_cast<size_t>(id)];
  const auto found = strings_.find(id);
  if (found != strings_.end()) return found->second;
  ++part_.losses[Stat::kNameMissing];
  return pool_.strings.intern("string " + std::to_string(id));
}

void NsightNames::read_processes() {
  // Numbered here, whoever reads their rows; the one whose work comes first is 0.
  for (const auto& [table, column] : {std::pair(kNsightKernels, "globalPid"), std::pair(kNsightCalls, "globalTid")}) {
    const int64_t first = database_.first_integer(table, column);
    if (first != kNoNumber && process_index_.empty()) process_index_[pid_of(first)] = 0;
  }
  if (database_.has_table("PROCESSES")) {
    are_processes_known_ = true;
    database_.scan("PROCESSES", {"globalPid", "name"}, part_.losses, [&](const SqlRow& row) {
      const int64_t pid = pid_of(row.integer(0));
      process_names_[pid] = pool_.strings.intern(row.text(1));
      process_index_.try_emplace(pid, static_cast<int64_t>(process_index_.size()));
    });
  }
  if (database_.has_table("ThreadNames")) {
    database_.scan("ThreadNames", {"globalTid", "nameId"}, part_.losses, [&](const SqlRow& row) {
      const int64_t thread = row.integer(0);
      thread_names_[{pid_of(thread), tid_of(thread)}] = string(row.integer(1));
    });
  }
}

// Correlation ids count from 0 in each process.
int64_t NsightNames::joined(int64_t pid, int64_t id) {
  if (id == kNoNumber || id < 0 || id > UINT32_MAX) return kNoNumber;
  if (pid != last_pid_) {
    // An unlisted one: the same number in whichever order rows are read.
    constexpr int64_t kUnlisted = int64_t{1} << 25;
    const auto known = process_index_.find(pid);
    last_index_ = known != process_index_.end() ? known->second : kUnlisted + pid;
    last_pid_ = pid;
  }
  return last_index_ << 32 | id;
}

LaneId NsightNames::thread_lane(int64_t global_tid) {
  if (!last_thread_ || last_thread_->first != global_tid) last_thread_ = {global_tid, find_thread_lane(global_tid)};
  return last_thread_->second;
}

LaneId NsightNames::find_thread_lane(int64_t global_tid) {
  const int64_t pid = pid_of(global_tid);
  const int64_t tid = tid_of(global_tid);
  const auto [at, added] = thread_lanes_.try_emplace({pid, tid}, LaneId{});
  if (!added) return at->second;
  at->second = pool_.lane({.number = pid}, {.number = tid});
  if (const auto name = process_names_.find(pid); name != process_names_.end())
    part_.lane_names.push_back({.lane = at->second, .what = LaneNameKind::kProcessName, .text = name->second});
  if (const auto name = thread_names_.find({pid, tid}); name != thread_names_.end())
    part_.lane_names.push_back({.lane = at->second, .what = LaneNameKind::kThreadName, .text = name->second});
  return at->second;
}

// A stream's lane; streams of several processes on one device have the same numbers.
LaneId NsightNames::stream_lane(int64_t device, int64_t stream, int64_t pid) {
  const std::tuple key(device, stream, pid);
  if (!last_stream_ || last_stream_->first != key) last_stream_ = {key, find_stream_lane(device, stream, pid)};
  return last_stream_->second;
}

LaneId NsightNames::find_stream_lane(int64_t device, int64_t stream, int64_t pid) {
  const auto [at, added] = stream_lanes_.try_emplace({device, stream, pid}, LaneId{});
  if (!added) return at->second;
  const auto [owner, is_first] = stream_owner_.try_emplace({device, stream}, pid);
  if (owner->second == pid) {
    at->second = pool_.lane({.number = device}, {.number = stream});
  } else {
    at->second =
        pool_.lane({.number = device}, pool_.text_id(std::to_string(stream) + " of process " + std::to_string(pid)));
  }
  return at->second;
}

}  // namespace firelane::importer
