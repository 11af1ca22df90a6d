// The notes of a .lane file: what the recorder says about itself and the program.
#include <algorithm>

#include "import/lane/lane_rows.h"

namespace firelane::importer {
namespace {

constexpr double kMaxCostNs = 1e9;  // of one event

StepDisturbance disturbance_of(format::StepPhase phase) {
  if (phase == format::StepPhase::kUnrecorded) return StepDisturbance::kNone;
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
  while (reader.next(item)) note(item);
  part_.losses[Stat::kLaneChunkDamaged] += reader.damaged_items();
}

void LaneRows::note(const format::NoteItem& n) {
  RecorderInfo& recorder = raw_.info.recorder;
  switch (n.tag) {
    case format::Note::kProcess:
      pid_ = static_cast<uint32_t>(n.number);
      ticks_per_second_ = n.value;
      command_ = n.text;
      recorder.command = n.text;
      recorder.host_name = n.key;
      break;
    case format::Note::kClockPair:
      if (!is_plausible(n.pair)) {
        ++part_.losses[Stat::kLaneChunkDamaged];
        break;
      }
      if (n.role == format::PairRole::kStart) start_ = n.pair;
      last_pair_ = n.pair;
      break;
    case format::Note::kOption:
      // As Kineto does: options that are on are top-level keys of the trace.
      if (n.text != "0") raw_.info.metadata.push_back({std::string(n.key), std::string(n.text)});
      break;
    case format::Note::kMetadata:
      // Of a recorder that wrote no segments: the state at its start.
      if (n.key == "cuda_memory_at_start") allocator_.add_old_snapshot(n.text, static_cast<int64_t>(start_.ticks));
      raw_.info.metadata.push_back({std::string(n.key), std::string(n.text)});
      break;
    case format::Note::kStep:
      part_.timed_steps.push_back(
          {.number = n.step,
           .start_ns = static_cast<int64_t>(n.pair.ticks),
           .duration_ns = static_cast<int64_t>(n.pair.ticks + n.number),
           .device_ns = n.device_ns >= 0 && n.device_ns <= kMaxDurationNs ? n.device_ns : kNoNumber,
           .disturbance = disturbance_of(n.phase)});
      break;
    case format::Note::kCost:
      // Not a number, or more than any event can cost: analyses would count with it.
      if (n.value >= 0 && n.value <= kMaxCostNs) {
        recorder.costs.push_back({std::string(n.key), n.value});
      } else {
        ++part_.losses[Stat::kLaneChunkDamaged];
      }
      break;
    case format::Note::kLoss: {
      const auto same = std::find_if(recorder.losses.begin(), recorder.losses.end(),
                                     [&](const RecorderInfo::Loss& loss) { return loss.reason == n.key; });
      if (same != recorder.losses.end()) {
        same->count = n.number;
      } else {
        recorder.losses.push_back({std::string(n.key), n.number});
      }
      break;
    }
    case format::Note::kStopped: recorder.stopped_because = n.key; break;
    case format::Note::kPause:
      if (!n.resumed) pauses_.push_back(n.pair.ticks);
      break;
    case format::Note::kThread: {
      Thread& t = thread(static_cast<uint32_t>(n.number), n.thread_id);
      if (!t.named_by_program) t.name = n.key;
      break;
    }
    case format::Note::kDeviceClock: device_.add_clock(n); break;
    case format::Note::kDeviceWindow: device_.add_window(n); break;
    case format::Note::kSegment:
      if (!allocator_.add_segment(n)) ++part_.losses[Stat::kLaneChunkDamaged];
      break;
    case format::Note::kOverload: set_overload(n.number, n.key); break;
  }
}

}  // namespace firelane::importer
