// What the device's records say before the graph is built: which calls launched what, which latencies are usual, which
// work waits for which of another stream. Private to analyze/graph*.cc.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct DeviceFacts {
  std::vector<Row> last_work_of;                  // by host slice: the work it launched that ends last; kNoRow: none
  std::vector<int64_t> starts;                    // of all device work, sorted
  std::vector<int64_t> launch_starts;             // of all launching calls, once per piece of work, sorted
  std::vector<std::pair<Row, Row>> stream_waits;  // (work that waits, work waited for), sorted
  int64_t launch_latency_ns = 0;                  // usual: call start to start on an idle device
  int64_t stream_gap_ns = 0;                      // usual: between two queued pieces of work
  // How far the device's clock may be ahead of the host's: work that was waited for may seem to end this much later
  // than the wait.
  int64_t clock_skew_ns = 0;

  // Pieces of work that were launched and had not started.
  int64_t queue_depth(int64_t time_ns) const;
};

DeviceFacts device_facts(const Model& model);

}  // namespace firelane::analyze
