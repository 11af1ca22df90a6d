// How data comes in: waiting for the DataLoader per step, and copies from host to device.
//
// Waiting is the time in the loader's __next__ on the thread of the steps: with workers it is waiting for them, without
// it is loading itself. Transfers are copies HtoD, pinned or pageable as the recorder names them; overlapped is the
// part during which some kernel ran.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

enum class LoaderKind : uint8_t { kNone, kSingleProcess, kMultiProcess, kOther };
std::string_view name_of(LoaderKind kind);  // "none", "in the training process", "worker processes", "other"

struct StepInput {
  int64_t step = kNoNumber;  // kNoNumber: outside of steps
  int64_t duration_ns = 0;
  int64_t wait_ns = 0;  // in the loader
  int64_t loads = 0;
  int64_t transfer_ns = 0;  // device time of copies from the host
  int64_t transfer_bytes = 0;
};

struct TransferRow {
  StringId name = kNoString;  // "Memcpy HtoD (Pageable -> Device)"
  bool pinned = false;
  int64_t calls = 0;
  int64_t bytes = 0;
  int64_t total_ns = 0;
  int64_t overlapped_ns = 0;  // some kernel ran meanwhile
  double bandwidth_gb_s() const {
    return total_ns == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(total_ns);
  }
};

struct InputPipeline {
  LoaderKind loader = LoaderKind::kNone;
  std::vector<StepInput> steps;  // in order
  StepInput outside;
  std::vector<TransferRow> transfers;
  int64_t wait_ns = 0;                 // all
  int64_t median_wait_ns = kNoNumber;  // per step
  int64_t median_step_ns = kNoNumber;
  // Loading itself, where the trace sees it: without workers. Worker processes are not in a trace of this process, so
  // how busy they were is not known.
  int64_t load_ns = 0;
};

InputPipeline input_pipeline(const Model& model);

}  // namespace firelane::analyze
