// What several reports say in the same words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/device_words.h"
#include "analyze/verdict/study.h"
#include "model/model.h"
#include "report/arguments.h"
#include "report/table.h"

namespace firelane::report {

inline constexpr const char* kNoDeviceWork =
    "no device work in this trace: record with activities=[..., ProfilerActivity.CUDA] on a machine with a GPU";

// In the words of the tool that wrote the trace.
inline std::string no_steps(const Model& model) {
  const std::string_view words = advise::how_to_mark_steps(model.info.origin);
  return "no steps in this trace: " + std::string(words == advise::kCallStep ? "record with schedule=..., and " : "") +
         std::string(words);
}

// Findings of a trace or of a job, still without rows; `more`: the columns behind those that both have.
inline Table empty_findings(std::vector<Column> more) {
  Table table{.name = "findings",
              .title = "Findings",
              .columns = {{"id", "Finding"},
                          {"title", "What"},
                          {"share_of_step_percent", "Of a step", Kind::kPercent},
                          {"gain_low_ns", "Saves at least", Kind::kDuration},
                          {"gain_high_ns", "Saves at most", Kind::kDuration}},
              .hide_if_empty = true};
  std::move(more.begin(), more.end(), std::back_inserter(table.columns));
  return table;
}

// What the usual step took while it was recorded stands under what it takes.
inline std::string recorded_label(const analyze::Study& study) { return "  " + std::string(study.while_recording()); }

inline constexpr const char* kRecordedStepsFact = "recorded_steps";
// Which steps a report covers, if a recording has light and full ones.
inline Fact recorded_steps_fact(analyze::RecordedSteps steps) {
  return {kRecordedStepsFact, "Recorded steps", Kind::kText, std::string(analyze::name_of(steps))};
}

// The name of a host slice.
inline Cell host_name(const Model& model, Row slice) {
  return slice == kNoRow ? Cell{} : Cell{std::string(model.text(model.host_slices.name[slice]))};
}

// How many of `all` rows are shown.
inline size_t shown_of(size_t all, const Arguments& wanted) {
  return wanted.rows() == 0 ? all : std::min(all, wanted.rows());
}

// Says how many rows are not shown, and how to see them.
inline void note_left_out(Report& report, size_t left_out, std::string_view what) {
  if (left_out == 0) return;
  report.notes.emplace_back(std::to_string(left_out) + " more " + std::string(what), "--rows 0 shows all");
}

}  // namespace firelane::report
