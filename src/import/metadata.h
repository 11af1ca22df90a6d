// Top-level keys of a trace: kept as they are, and read for what the model says with types.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace firelane::importer {

// Keeps a top-level key; of two values of one key the last one counts, as in every JSON reader.
void keep_metadata(std::string key, std::string json, std::vector<MetadataEntry>& metadata, LossCounts& losses);

// Fills devices, distributed info, environment and base time from the metadata.
void interpret_metadata(TraceInfo& info);

}  // namespace firelane::importer
