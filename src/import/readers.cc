// The list of formats that Firelane reads.
#include "import/dumps/read_dump.h"
#include "import/json/read_json.h"
#include "import/lane/read_lane.h"
#include "import/reader.h"

namespace firelane::importer {

std::span<const Reader> known_readers() {
  static const Reader kReaders[] = {
      lane_reader(),
      pickle_reader(),
      flight_json_reader(),
      json_reader(),  // takes all texts
  };
  return kReaders;
}

}  // namespace firelane::importer
