// What surrounds the events of a Chrome trace: the keys before and behind the list, and
// what they say about the program (devices, rank, clock, recording options).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "import/byte_source.h"
#include "model/model.h"

namespace firelane::importer {

struct EnvelopeStart {
  bool is_object = false;      // {"traceEvents": [...]}; else a bare list
  uint64_t events_source = 0;  // the place behind the "[" of the event list
  std::string carry;           // text read beyond that place
  std::vector<MetadataEntry> metadata;
  LossCounts losses;
};

// Reads from the start of the source up to the event list. An error says that this is not
// a trace.
Result<EnvelopeStart> read_envelope_start(ByteSource& source, const std::string& name);

// The keys behind the event list; `text` is what follows its "]".
void read_envelope_end(std::string_view text, std::vector<MetadataEntry>& metadata, LossCounts& losses);

}  // namespace firelane::importer
