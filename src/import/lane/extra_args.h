// Extra args of a slice, a JSON object: what a collective was asked to do has columns of its own, the rest is kept.
// Private to import/lane.
#pragma once

#include <optional>
#include <string_view>

#include "model/raw.h"

namespace firelane::importer {

// Nothing when `json` tells of no collective, or is no JSON.
std::optional<RawComm> collective_of(std::string_view json, RawPool& pool);
// The object without its spaces; kNoString when `json` is none.
StringId object_of(std::string_view json, RawPool& pool);

}  // namespace firelane::importer
