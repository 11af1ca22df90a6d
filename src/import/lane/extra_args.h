// Extra args of a slice (a JSON object) that the model has columns for: what a collective was asked to do.
// Private to import/lane.
#pragma once

#include <optional>
#include <string_view>

#include "model/raw.h"

namespace firelane::importer {

// Nothing when `json` tells of no collective, or is no JSON.
std::optional<RawComm> collective_of(std::string_view json, RawPool& pool);

}  // namespace firelane::importer
