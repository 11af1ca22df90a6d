// Why a step of a long run was slow: its parts against those of the steps around it.
//
// What every step leaves is nearly free to record: its time on host and GPU, and how much of it was garbage collection,
// waiting for input and saving, and how long the training thread was on a core. The part that grew by at least half of
// what the step took too long is its cause; where none did, the thread either computed longer, or was not running.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "always/step_log.h"
#include "base/result.h"

namespace firelane::always {

enum class Cause : uint8_t {
  kNone,  // as long as usual
  kInput,
  kGc,
  kSave,
  kDevice,      // the GPU took longer, and the program waited for it
  kComputing,   // the training thread ran longer
  kNotRunning,  // it was blocked or had no core
  kRecording,   // the step was recorded
};
std::string_view name_of(Cause cause);      // "input", "garbage-collection", ...
std::string_view sentence_of(Cause cause);  // "waiting for the data loader"

struct StepPart {
  std::string_view name;  // "waiting for input"
  int64_t ns = -1;
  int64_t usual_ns = -1;
};

struct StepStory {
  StepRow step;
  int64_t usual_ns = -1;  // median of the steps around it; -1: there are too few
  int64_t compared_with = 0;
  Cause cause = Cause::kNone;
  std::vector<StepPart> parts;
};

// `step` lies in rows[at].
StepStory story_of(const std::vector<StepRow>& rows, size_t at);

// What is known of a step, as text; without one (-1), the incidents and the slowest steps of the run.
Result<std::string> why(const std::filesystem::path& run, int64_t step);

}  // namespace firelane::always
