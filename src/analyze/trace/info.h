// What a trace is, and what it can answer: the facts behind `firelane info`.
//
// Each question that Firelane can ask of a trace is listed with whether this trace holds
// what the answer needs, and if not, what to record to get it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

// A switch of the recording: on, off, or not said by the trace.
enum class Switch : uint8_t { kUnknown, kOff, kOn };
std::string_view name_of(Switch state);  // "unknown", "off", "on"

struct RecordingOption {
  std::string_view name;  // as the argument of torch.profiler.profile
  Switch state = Switch::kUnknown;
};

struct Answer {
  std::string_view question;  // "time per operator"
  bool possible = false;
  std::string reason;  // why not: what the trace lacks
  std::string remedy;  // what to record; "" when possible
};

struct Loss {
  Stat stat{};
  uint64_t count = 0;
};

struct Span {
  StringId name = kNoString;
  int64_t start_ns = 0;     // of the first one
  int64_t duration_ns = 0;  // of all
  int64_t count = 1;        // more where there are many: one a name then
};

struct EventCounts {
  std::array<int64_t, kHostKindCount> host{};
  std::array<int64_t, kDeviceKindCount> device{};
  int64_t memory = 0;
  int64_t instants = 0;
  int64_t counter_samples = 0;
  int64_t flows = 0;
};

// Steps as our recorder timed them: without recording (the true step) and while recording.
// Medians; kNoNumber when there are none.
struct StepTimes {
  int64_t true_step_ns = kNoNumber;
  int64_t true_step_count = 0;
  int64_t true_device_step_ns = kNoNumber;  // the same steps by the device's clock, where it timed them
  int64_t recorded_step_ns = kNoNumber;
  int64_t recorded_step_count = 0;
  int64_t light_step_ns = kNoNumber;  // median; the same without ops
  int64_t light_step_count = 0;
};

struct TraceDescription {
  std::string program;                // name of the process with the most host slices; "" unknown
  int64_t process_id = kNoNumber;     // its id
  int64_t unix_start_ns = kNoNumber;  // when the trace starts; kNoNumber when it does not say
  int64_t threads = 0;                // lanes with at least one slice
  int64_t streams = 0;
  int64_t counted_ns = 0;      // the duration, less device work before and after the recording (device_work.h)
  int64_t device_busy_ns = 0;  // union over all streams
  StepTimes step_times;
  EventCounts events;
  std::vector<Span> spans;  // of the profiler itself, in order of time
  std::vector<RecordingOption> options;
  std::vector<Answer> answers;
  std::vector<Loss> losses;  // data loss first, then warnings, then the rest
};

// Without what steps lost to other programs (host/core_waits.h).
StepTimes find_step_times(const Model& model);
TraceDescription describe_trace(const Model& model);
// Its `options` alone, which cost one pass over the trace.
std::vector<RecordingOption> recording_options(const Model& model);

}  // namespace firelane::analyze
