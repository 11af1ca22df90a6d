// The notes of a .lane file: what the recorder says about itself and the program.
#include <algorithm>
#include <charconv>
#include <variant>

#include "import/lane/lane_rows.h"
#include "import/lane/sample_rows.h"
#include "import/metadata.h"

namespace firelane::importer {
namespace {

constexpr double kMaxCostNs = 1e9;  // of one event

StepDisturbance disturbance_of(format::StepPhase phase) {
  if (phase == format::StepPhase::kUnrecorded) return StepDisturbance::kNone;
  if (phase == format::StepPhase::kLight) return StepDisturbance::kLight;
  return phase == format::StepPhase::kWarmup ? StepDisturbance::kWarmup : StepDisturbance::kRecorded;
}

// 31 years since boot, 126 since 1970: sums of such times stay inside of int64.
bool is_plausible(const ClockPair& pair) {
  constexpr int64_t kLimit = 1'000'000'000'000'000'000;
  return pair.monotonic_ns >= 0 && pair.monotonic_ns < kLimit && pair.unix_ns >= 0 && pair.unix_ns < 4 * kLimit;
}

}  // namespace

void LaneRows::add_notes(std::string_view payload) {
  format::NotesReader reader(payload);
  format::NoteItem item;
  while (reader.next(item)) std::visit([&](const auto& each) { note(each); }, item);
  part_.losses[Stat::kLaneChunkDamaged] += reader.damaged_items();
}

void LaneRows::note(const format::ProcessNote& n) {
  pid_ = n.pid;
  ticks_per_second_ = n.ticks_per_second;
  command_ = n.command;
  raw_.info.recorder.command = n.command;
  raw_.info.recorder.host_name = n.host;
}

void LaneRows::note(const format::ClockNote& n) {
  if (!is_plausible(n.pair)) {
    ++part_.losses[Stat::kLaneChunkDamaged];
    return;
  }
  if (n.role == format::PairRole::kStart) start_ = n.pair;
  last_pair_ = n.pair;
}

// As Kineto does: options that are on are top-level keys of the trace.
void LaneRows::note(const format::OptionNote& n) {
  if (n.value != "0") keep_metadata(std::string(n.key), std::string(n.value), raw_.info.metadata, part_.losses);
}

void LaneRows::note(const format::MetadataNote& n) {
  // For a recorder that wrote no segments: the state at its start.
  if (n.key == "cuda_memory_at_start") allocator_.add_old_snapshot(n.json, static_cast<int64_t>(start_.ticks));
  if (n.key == "stack_samples") return add_stack_samples(n.json, pid_, pool_, part_);
  if (n.key == "first_op_id") {
    int64_t id = 0;
    std::from_chars(n.json.data(), n.json.data() + n.json.size(), id);
    if (id > 0 && id < INT32_MAX) first_op_id_ = id;
    return;
  }
  keep_metadata(std::string(n.key), std::string(n.json), raw_.info.metadata, part_.losses);
}

void LaneRows::note(const format::StepNote& n) {
  part_.timed_steps.push_back({.number = n.number,
                               .start_ns = static_cast<int64_t>(n.start_ticks),
                               .duration_ns = static_cast<int64_t>(n.start_ticks + n.duration_ticks),
                               .device_ns = n.device_ns >= 0 && n.device_ns <= kMaxDurationNs ? n.device_ns : kNoNumber,
                               .disturbance = disturbance_of(n.phase)});
}

void LaneRows::note(const format::StepThreadNote& n) {
  if (part_.timed_steps.empty() || n.ran_ns < 0 || n.ran_ns > kMaxDurationNs || n.waited_ns < 0 ||
      n.waited_ns > kMaxDurationNs) {
    ++part_.losses[Stat::kLaneChunkDamaged];
    return;
  }
  part_.timed_steps.back().ran_ns = n.ran_ns;
  part_.timed_steps.back().waited_ns = n.waited_ns;
}

// Not a number, or more than any event can cost: analyses would count with it.
void LaneRows::note(const format::CostNote& n) {
  if (n.ns >= 0 && n.ns <= kMaxCostNs) {
    raw_.info.recorder.costs.push_back({std::string(n.event), n.ns});
  } else {
    ++part_.losses[Stat::kLaneChunkDamaged];
  }
}

void LaneRows::note(const format::LossNote& n) {
  std::vector<RecorderInfo::Loss>& losses = raw_.info.recorder.losses;
  const auto same = std::find_if(losses.begin(), losses.end(),
                                 [&](const RecorderInfo::Loss& loss) { return loss.reason == n.reason; });
  if (same != losses.end()) {
    same->count = n.count;
  } else {
    losses.push_back({std::string(n.reason), n.count});
  }
}

void LaneRows::note(const format::StoppedNote& n) { raw_.info.recorder.stopped_because = n.reason; }

void LaneRows::note(const format::PauseNote& n) {
  if (!n.is_resumed) pauses_.push_back(n.ticks);
}

void LaneRows::note(const format::LevelNote& n) {
  const bool is_light = n.level == format::RecordLevel::kLight;
  const bool was_light = !light_ticks_.empty() && light_ticks_.back().end == UINT64_MAX;
  if (is_light && !was_light) light_ticks_.push_back({.begin = n.ticks, .end = UINT64_MAX});
  if (!is_light && was_light) light_ticks_.back().end = n.ticks;
}

void LaneRows::note(const format::ThreadNote& n) {
  Thread& t = thread(n.index, n.thread_id);
  if (!t.named_by_program) t.name = n.name;
}

void LaneRows::note(const format::DeviceClockNote& n) { device_.add_clock(n); }
void LaneRows::note(const format::OverloadNote& n) { set_overload(n.text_id, n.overload); }
void LaneRows::note(const format::DeviceWindowNote& n) { device_.add_window(n); }

void LaneRows::note(const format::SegmentNote& n) {
  if (!allocator_.add_segment(n)) ++part_.losses[Stat::kLaneChunkDamaged];
}

}  // namespace firelane::importer
