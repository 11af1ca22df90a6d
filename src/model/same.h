// Whether two models say the same: for the promise that an export read again gives the model
// it came from, and that any way of cutting a file gives one model.
//
// Texts are compared as text and details through the slices they belong to, so that the
// order in which things were read does not matter. What describes the file and not the
// recording is left out: path, format, sizes, event_count, losses, places in the source, and
// the metadata keys that a writer sets itself (schemaVersion, displayTimeUnit, traceName).
#pragma once

#include <optional>
#include <string>

#include "model/model.h"

namespace firelane {

// The first difference, in words: "host_slices[3].name: aten::mm / aten::add"; nothing when same.
std::optional<std::string> first_difference(const Model& a, const Model& b);
// The same for one table, row by row.
std::optional<std::string> first_difference(const Model& a, const Model& b, const TableInfo& table);

}  // namespace firelane
