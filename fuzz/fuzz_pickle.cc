// The pickle reader and what is read from pickles: memory snapshots and flight recorders. Flight recorders of the same
// bytes as two ranks are compared as well.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "flight/hangs.h"
#include "import/dumps/flight.h"
#include "import/pickle/unpickle.h"
#include "use_model.h"

namespace {

void look_for_hangs(const firelane::importer::Document& document) {
  using namespace firelane;
  if (!importer::is_flight_log(document)) return;
  std::vector<FlightLog> logs;
  for (const char* name : {"rank_0", "rank_1"}) {
    logs.push_back(importer::flight_log(document, name));
    logs.back().rank = static_cast<int64_t>(logs.size()) - 1;
  }
  (void)flight::find_hangs(logs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firelane;
  std::string file(reinterpret_cast<const char*>(data), size);
  if (importer::is_pickle(file)) {
    const std::unique_ptr<importer::ByteSource> source = importer::open_memory(file);
    const auto found = importer::unpickle(*source, "fuzz", {.piece_bytes = 7, .free_bytes = uint64_t{1} << 20});
    if (found.ok()) look_for_hangs(found.value().document);
  } else if (importer::may_be_flight_json(file)) {
    if (const auto document = importer::document_of_json(file, "fuzz"); document.ok()) look_for_hangs(document.value());
  } else {
    return 0;
  }
  fuzz::load_and_use(std::move(file));
  return 0;
}
