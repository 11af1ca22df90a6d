// The model's tables (model/catalog.h) as CSV, one table, and as JSON, all of them.
//
// CSV follows RFC 4180's quoting, with lines that end in LF; absent values are empty. JSON
// is one object: "trace" with facts about the recording, then every table as a list of
// objects, absent values left out. Text that is not UTF-8 gets U+FFFD for each bad byte.
#pragma once

#include "export/byte_sink.h"
#include "model/catalog.h"
#include "model/model.h"

namespace firelane::exporter {

void export_csv(const Model& model, const CatalogTable& table, ByteSink& sink);
void export_json(const Model& model, ByteSink& sink);

}  // namespace firelane::exporter
