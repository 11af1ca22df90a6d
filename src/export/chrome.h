// Writes the model as Chrome trace JSON in Kineto's form: what chrome://tracing, Perfetto's
// legacy importer, HTA and firelane itself read. Read again, it gives the same model
// (model/same.h).
//
// Args are the original ones where the model has a source, else written from its columns.
// Events are written in the order of the source; memory does not grow with their text.
#pragma once

#include "base/result.h"
#include "export/byte_sink.h"
#include "export/place.h"
#include "model/model.h"

namespace firelane::exporter {

Result<void> export_chrome(const Model& model, ByteSink& sink, const ExportPlace& place = {});

// Several traces in one file, one after another.
void begin_chrome(ByteSink& sink);
Result<void> add_to_chrome(const Model& model, const ExportPlace& place, ByteSink& sink);
void end_chrome(ByteSink& sink);

}  // namespace firelane::exporter
