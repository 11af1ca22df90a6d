#include "import/dumps/read_dump.h"

#include <string>

#include "import/content.h"
#include "import/dumps/flight.h"
#include "import/dumps/snapshot_rows.h"
#include "import/metadata.h"
#include "import/pickle/unpickle.h"

namespace firelane::importer {

namespace {

// The keys of what was found, for a message.
std::string keys_of(const Document& document) {
  std::string keys;
  size_t count = 0;
  document.each_pair(document.root, [&](Value key, Value) {
    keys += (keys.empty() ? "" : ", ") + std::string(document.text(key).substr(0, 40));
    return ++count < 5;
  });
  return keys;
}

Error unknown_content(const std::string& name, const Document& document) {
  const std::string keys = keys_of(document);
  return {name + ": an unrelated pickle" + (keys.empty() ? "" : " (" + keys + ")") +
          "; memory snapshots (torch.cuda.memory._dump_snapshot) and NCCL flight recorders are read"};
}

Result<RawTrace> read_pickle(std::unique_ptr<ByteSource> source, const ReadRequest& request) {
  FL_TRY(Unpickled found, unpickle(*source, request.name));
  if (!source->fatal().empty()) return Error{request.name + ": " + source->fatal()};
  if (request.progress) request.progress(source->consumed_bytes(), source->total_bytes());
  const Document& document = found.document;
  RawTrace raw;
  if (is_snapshot(document)) {
    raw = snapshot_rows(document);
  } else if (is_flight_log(document)) {
    raw = flight_rows(flight_log(document, request.name));
  } else {
    return unknown_content(request.name, document);
  }
  raw.info.content_bytes = found.bytes;
  raw.losses.add(source->losses());
  if (found.is_cut) raw.losses[Stat::kTruncated] = 1;
  return raw;
}

std::string all_of(ByteSource& source) {
  std::string bytes;
  constexpr size_t kPiece = size_t{1} << 20;
  for (size_t got = kPiece; got == kPiece;) {
    const size_t at = bytes.size();
    bytes.resize(at + kPiece);
    got = source.read(bytes.data() + at, kPiece);
    bytes.resize(at + got);
  }
  return bytes;
}

Result<RawTrace> read_flight_json(std::unique_ptr<ByteSource> source, const ReadRequest& request) {
  const std::string text = all_of(*source);
  if (!source->fatal().empty()) return Error{request.name + ": " + source->fatal()};
  if (request.progress) request.progress(source->consumed_bytes(), source->total_bytes());
  FL_TRY(const Document document, document_of_json(text, request.name));
  if (!is_flight_log(document)) return Error{request.name + ": JSON, but neither a trace nor a flight recorder dump"};
  RawTrace raw = flight_rows(flight_log(document, request.name));
  raw.info.content_bytes = text.size();
  raw.losses.add(source->losses());
  return raw;
}

}  // namespace

Reader pickle_reader() { return {"pickle", is_pickle, read_pickle}; }
Reader flight_json_reader() { return {"NCCL flight recorder", may_be_flight_json, read_flight_json}; }

Result<FlightLog> load_flight_log(const std::string& path) {
  FL_TRY(Content content, open_content(path));
  if (is_pickle(content.begin)) {
    FL_TRY(const Unpickled found, unpickle(*content.source, path));
    if (!is_flight_log(found.document)) return Error{path + ": a pickle, but not a flight recorder dump"};
    return flight_log(found.document, path);
  }
  if (!may_be_flight_json(content.begin)) return Error{path + ": not a flight recorder dump"};
  FL_TRY(const Document document, document_of_json(all_of(*content.source), path));
  if (!is_flight_log(document)) return Error{path + ": not a flight recorder dump"};
  return flight_log(document, path);
}

}  // namespace firelane::importer
