#include "analyze/trace/lanes.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "analyze/device/device_work.h"

namespace firelane::analyze {

namespace {

void extend(LaneRow& row, int64_t start_ns, int64_t end_ns) {
  row.first_ns = row.slices == 0 ? start_ns : std::min(row.first_ns, start_ns);
  row.last_ns = row.slices == 0 ? end_ns : std::max(row.last_ns, end_ns);
  ++row.slices;
}

// How much time intervals cover that come in order of start; each moment counts once.
class Coverage {
 public:
  void add(int64_t start_ns, int64_t end_ns) {
    if (end_ns <= until_ns_) return;
    total_ns_ += end_ns - std::max(start_ns, until_ns_);
    until_ns_ = end_ns;
  }
  int64_t total_ns() const { return total_ns_; }

 private:
  int64_t until_ns_ = INT64_MIN;
  int64_t total_ns_ = 0;
};

class LaneRowMaker {
 public:
  LaneRowMaker(const Model& model, size_t lane) : model_(model), row_{.lane = static_cast<LaneId>(lane)} {}

  void add_host(Row slice) {
    const HostSlices& slices = model_.host_slices;
    extend(row_, slices.start_ns[slice], slices.end_ns(slice));
    row_.depth = std::max<int64_t>(row_.depth, slices.depth[slice] + 1);
    if (slices.kind[slice] != HostKind::kSpan) work_.add(slices.start_ns[slice], slices.end_ns(slice));
  }

  void add_device(Row slice) {
    const DeviceSlices& slices = model_.device_slices;
    extend(row_, slices.start_ns[slice], slices.end_ns(slice));
    if (!is_device_work(slices.kind[slice]) || !is_counted(model_, slice)) return;
    const Interval part = counted_part(model_, slice);
    work_.add(part.start_ns, part.end_ns);
    while (!open_ends_.empty() && open_ends_.top() <= slices.start_ns[slice]) open_ends_.pop();
    open_ends_.push(slices.end_ns(slice));
    row_.depth = std::max(row_.depth, static_cast<int64_t>(open_ends_.size()));
  }

  LaneRow take() {
    row_.busy_ns = work_.total_ns();
    return row_;
  }

 private:
  const Model& model_;
  LaneRow row_;
  Coverage work_;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> open_ends_;  // of device work
};

}  // namespace

// Slices of a lane are sorted by start, those of the host and those of the device: both are walked at once.
std::vector<LaneRow> lane_table(const Model& model) {
  std::vector<LaneRow> rows;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    LaneRowMaker maker(model, lane);
    Row host = model.lanes.host_begin[lane];
    Row device = model.lanes.device_begin[lane];
    const Row host_end = model.lanes.host_end[lane];
    const Row device_end = model.lanes.device_end[lane];
    while (host < host_end || device < device_end) {
      const bool is_host = device == device_end || (host < host_end && model.host_slices.start_ns[host] <=
                                                                           model.device_slices.start_ns[device]);
      if (is_host) {
        maker.add_host(host++);
      } else {
        maker.add_device(device++);
      }
    }
    rows.push_back(maker.take());
  }
  return rows;
}

}  // namespace firelane::analyze
