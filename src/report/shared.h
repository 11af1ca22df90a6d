// What several reports say in the same words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "model/model.h"
#include "report/arguments.h"
#include "report/table.h"

namespace firelane::report {

inline constexpr const char* kNoDeviceWork =
    "no device work in this trace: record with activities=[..., ProfilerActivity.CUDA] on a machine with a GPU";
inline constexpr const char* kNoSteps =
    "no steps in this trace: record with schedule=..., and call prof.step() after each iteration";

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
