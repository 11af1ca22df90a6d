// Writes the model as Chrome trace JSON in Kineto's form: what chrome://tracing, Perfetto's
// legacy importer, HTA and firelane itself read. Read again, it gives the same model
// (model/same.h).
//
// Args are the original ones where the model has a source, else written from its columns.
// Events are written in the order of the source; memory does not grow with their text.
#pragma once

#include "base/result.h"
#include "export/byte_sink.h"
#include "model/model.h"

namespace firelane::exporter {

Result<void> export_chrome(const Model& model, ByteSink& sink);

}  // namespace firelane::exporter
