#include "analyze/verdict/torch_costs.h"

#include <algorithm>
#include <vector>

#include "analyze/trace/info.h"
#include "base/run_sort.h"
#include "model/how_to_record.h"

namespace firelane::analyze {

namespace {

// What an event takes in all while it is recorded, the program's own part included, in units of host time.
struct Expected {
  double op = 1.77;
  double shapes = 0.37;  // of an operator, in addition
  double python = 0.32;
  double launch = 1.92;
  double call = 0.5;
  double memory = 0.1;
};

// With and without ProfilerActivity.CUDA, which pushes ids for kernels.
struct Costs {
  SliceCosts of_event;  // units of host time
  double shapes;        // of an operator, in addition
  double usual_ns;      // the unit, if the trace has too little to tell or torch did not write it
};
constexpr Costs kWithDevice = {
    .of_event = {.op = 1.05, .python = 0.3, .annotation = 1.05, .launch = 0.75, .call = 0.28, .memory = 0.1},
    .shapes = 0.46,
    .usual_ns = 3'500};
constexpr Costs kWithoutDevice = {
    .of_event = {.op = 1.12, .python = 0.43, .annotation = 1.12, .launch = 0, .call = 0, .memory = 0},
    .shapes = 0.58,
    .usual_ns = 350};
constexpr double kQuantile = 0.4;  // of the stretches, that is taken as the unit
constexpr double kLeastNs = 500;   // the unit
constexpr double kMostNs = 9'000;
constexpr size_t kEnoughStretches = 20;
constexpr size_t kEnoughOfStep = 40;

struct RecordedEvent {
  int64_t time_ns = 0;
  double units = 0;
  bool outermost_op = false;
};

class HostUnit {
 public:
  HostUnit(const Model& model, const HostChain& chain, const Interval& window, bool shapes)
      : model_(model), chain_(chain), window_(window) {
    if (shapes) expected_.op += expected_.shapes;
    collect();
  }

  // ns, at `quantile` of the stretches of `part` by what they should take; `otherwise` when there are fewer than
  // `enough`.
  double at(const Interval& part, double quantile, size_t enough, double otherwise) const {
    struct Stretch {
      double unit_ns;
      double units;
    };
    std::vector<Stretch> stretches;
    double units = 0;
    double total = 0;
    int64_t start_ns = kNoNumber;
    const auto begin = std::partition_point(events_.begin(), events_.end(),
                                            [&](const RecordedEvent& event) { return event.time_ns < part.start_ns; });
    for (auto at = begin; at != events_.end() && at->time_ns < part.end_ns; ++at) {
      const RecordedEvent& event = *at;
      if (event.outermost_op) {
        if (start_ns != kNoNumber && units > 0) {
          stretches.push_back({static_cast<double>(event.time_ns - start_ns) / units, units});
          total += units;
        }
        start_ns = event.time_ns;
        units = 0;
      }
      units += event.units;
    }
    if (stretches.size() < enough) return otherwise;
    std::sort(stretches.begin(), stretches.end(),
              [](const Stretch& a, const Stretch& b) { return a.unit_ns < b.unit_ns; });
    double below = 0;
    for (const Stretch& stretch : stretches) {
      below += stretch.units;
      if (below >= quantile * total) return stretch.unit_ns;
    }
    return stretches.back().unit_ns;
  }

 private:
  bool inside(int64_t time_ns) const { return time_ns >= window_.start_ns && time_ns < window_.end_ns; }

  double expected(Row row, const std::vector<bool>& launches) const {
    switch (model_.host_slices.kind[row]) {
      case HostKind::kOp: return expected_.op;
      case HostKind::kPython: return expected_.python;
      case HostKind::kRuntime:
      case HostKind::kDriver: return launches[row] ? expected_.launch : expected_.call;
      default: return 0;
    }
  }

  void collect() {
    std::vector<bool> launches(model_.host_slices.size());
    for (const Row launch : model_.device_slices.launch) {
      if (launch != kNoRow) launches[launch] = true;
    }
    size_t rows = model_.memory_events.size();
    for (const LaneId lane : chain_.lanes) {
      rows += model_.lanes.host_end[static_cast<size_t>(lane)] - model_.lanes.host_begin[static_cast<size_t>(lane)];
    }
    events_.reserve(rows);
    for (const LaneId lane : chain_.lanes) {
      const auto l = static_cast<size_t>(lane);
      int64_t op_until_ns = INT64_MIN;
      for (Row row = model_.lanes.host_begin[l]; row < model_.lanes.host_end[l]; ++row) {
        const int64_t start_ns = model_.host_slices.start_ns[row];
        if (!inside(start_ns)) continue;
        const bool outermost = model_.host_slices.kind[row] == HostKind::kOp && start_ns >= op_until_ns;
        if (outermost) op_until_ns = model_.host_slices.end_ns(row);
        events_.push_back({start_ns, expected(row, launches), outermost});
      }
    }
    for (const int64_t time_ns : model_.memory_events.time_ns) {
      if (inside(time_ns)) events_.push_back({time_ns, expected_.memory, false});
    }
    run_sort(events_.data(), events_.size(),
             [](const RecordedEvent& a, const RecordedEvent& b) { return a.time_ns < b.time_ns; });
  }

  const Model& model_;
  const HostChain& chain_;
  const Interval& window_;
  Expected expected_;
  std::vector<RecordedEvent> events_;
};

}  // namespace

bool has_shapes(const Model& model) {
  const auto& dims = model.op_details.input_dims;
  return std::any_of(dims.begin(), dims.end(), [](StringId id) { return id != kNoString; });
}

bool is_by_torch(const Model& model) {
  return model.find_metadata("schemaVersion") != nullptr && records_as_torch(model.info.origin);
}

TorchCosts torch_costs(const Model& model, const HostTime& host, const StepList& steps) {
  const auto& kinds = model.host_slices.kind;
  const bool has_calls = std::any_of(kinds.begin(), kinds.end(), is_call);
  const Costs& costs = has_calls ? kWithDevice : kWithoutDevice;
  const bool shapes = has_shapes(model);
  double unit_ns = costs.usual_ns;
  TorchCosts out;
  if (has_calls && is_by_torch(model) && !host.chains.empty()) {
    const HostUnit host_unit(model, host.chains[0], steps.window, shapes);
    const auto unit_in = [&](const Interval& part, size_t enough, double otherwise) {
      return std::clamp(host_unit.at(part, kQuantile, enough, otherwise), kLeastNs, kMostNs);
    };
    unit_ns = unit_in(steps.window, kEnoughStretches, costs.usual_ns);
    for (const FoundStep& step : steps.steps) {
      out.pace.push_back(unit_in({step.start_ns, step.end_ns}, kEnoughOfStep, unit_ns) / unit_ns);
    }
  }
  const SliceCosts& units = costs.of_event;
  out.costs = {.op = (units.op + (shapes ? costs.shapes : 0)) * unit_ns,
               .python = units.python * unit_ns,
               .annotation = units.annotation * unit_ns,
               .launch = units.launch * unit_ns,
               .call = units.call * unit_ns,
               .memory = units.memory * unit_ns};
  return out;
}

}  // namespace firelane::analyze
