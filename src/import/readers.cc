// The list of formats that Firelane reads.
#include "import/dumps/read_dump.h"
#include "import/execution/read_execution.h"
#include "import/json/read_json.h"
#include "import/lane/read_lane.h"
#include "import/perfetto/read_perfetto.h"
#include "import/reader.h"
#include "import/rocprof/read_rocprof.h"
#include "import/sqlite_formats.h"
#include "import/stacks/read_stacks.h"
#include "import/xplane/read_xplane.h"

namespace firelane::importer {

std::span<const Reader> known_readers() {
  static const Reader kReaders[] = {
      lane_reader(),          //
      sqlite_reader(),        // Nsight Systems, rocpd
      xplane_reader(),        //
      perfetto_reader(),      // after XPlane: both begin alike, and an XPlane says more of itself
      chakra_reader(),        //
      rocprof_json_reader(),  //
      rocprof_csv_reader(),   //
      pickle_reader(),        // memory snapshots, flight recorders
      flight_json_reader(),
      execution_reader(),   // ExecutionTraceObserver, Chakra
      speedscope_reader(),  //
      collapsed_reader(),
      json_reader(),  // takes all texts
  };
  return kReaders;
}

}  // namespace firelane::importer
