// Any trace as a .lane file (`firelane convert`): the Chrome export in chunks of its own kind (format/layout.h), which
// the reader hands to the JSON reader, and beside it what such a trace has no form for (export/lane_tables.h). Every
// row, link and detail is kept; zstd makes it small.
#pragma once

#include "base/result.h"
#include "export/byte_sink.h"
#include "model/model.h"

namespace firelane::exporter {

// An error for traces that are .lane files already.
Result<void> export_lane(const Model& model, ByteSink& sink);

}  // namespace firelane::exporter
