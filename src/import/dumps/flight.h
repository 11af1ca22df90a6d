// NCCL flight recorder dumps, from torch's pickle or from its JSON.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/byte_source.h"
#include "import/pickle/document.h"
#include "model/flight_log.h"
#include "model/raw.h"

namespace firelane::importer {

// Whether a document is a flight recorder's: entries, and a version or the process groups.
bool is_flight_log(const Document& document);
// Whether JSON that begins so may be one; torch writes its keys in order of the alphabet.
bool may_be_flight_json(std::string_view begin);

// `path` names the rank where the dump does not: torch writes files called ..._rank_3 or ...3.
FlightLog flight_log(const Document& document, const std::string& path);

// A JSON text as a document; an Error when it is no JSON.
Result<Document> document_of_json(std::string_view text, const std::string& name);

// For a file: pickle or JSON, also compressed.
Result<FlightLog> load_flight_log(const std::string& path);

// Its collectives as slices, one lane for each process group.
RawTrace flight_rows(const FlightLog& log);

}  // namespace firelane::importer
