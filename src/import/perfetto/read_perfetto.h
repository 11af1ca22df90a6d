// Perfetto traces (.pftrace): track events, as torch's own exporter, ours, rocprofv3 and programs with Perfetto's SDK
// write them.
//
// A slice with its categories and debug annotations says the same as an event of Chrome JSON, so that it goes the same
// way from here on (import/json/event_rows.h): kinds, links and details are those of Kineto. docs/formats/perfetto.md.
#pragma once

#include <string_view>

#include "import/reader.h"

namespace firelane::importer {

// By the structure of the first packets.
bool is_perfetto(std::string_view begin);
Reader perfetto_reader();

}  // namespace firelane::importer
