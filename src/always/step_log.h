// The steps of an always-on recording: what `firelane record --always` leaves of every step, a line of CSV each.
//
//   RUN/steps-000001.csv ...     all steps, oldest file first; files are removed from the front when room is short
//   RUN/account.json             what recording has cost, against its budget
//   RUN/windows/step-N.lane      steps in detail, the newest ones: a trace that every verb opens
//   RUN/summaries.jsonl          of windows that had to go: verdict, parts and largest kernels
//   RUN/kept/step-N-KIND/        an incident: incident.txt, steps.csv, the windows around it, stacks.txt, verdict.txt
//
// python/firelane/_always writes it; the header line names the columns, so that both may add some.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firelane::always {

// Times are ns; -1: unknown. A line may stand for several steps in a row (`count`), where single ones are too short to
// be timed within the budget: then its times are sums.
struct StepRow {
  int64_t number = -1;  // the first of them
  int64_t count = 1;
  int64_t start_unix_ns = -1;
  int64_t host_ns = -1;
  int64_t device_ns = -1;  // between its ends on the GPU's stream
  int64_t cpu_ns = -1;     // that the training thread ran on a core
  int64_t gc_ns = -1;      // garbage collections
  int64_t input_ns = -1;   // in a DataLoader's __next__
  int64_t save_ns = -1;    // in torch.save
  int64_t rss_bytes = -1;
  int64_t cuda_bytes = -1;  // allocated on the current GPU
  bool recorded = false;    // light, full or warm-up: not what a step usually takes
};

// Lines that do not parse are passed over: the last one may be torn.
std::vector<StepRow> parse_steps(std::string_view csv);

// All steps of a run, in the order of their numbers. An Error if the folder has none.
Result<std::vector<StepRow>> read_steps(const std::filesystem::path& run);

}  // namespace firelane::always
