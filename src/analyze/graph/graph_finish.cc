#include "analyze/graph/graph_finish.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/device/device_work.h"
#include "analyze/graph/graph_device.h"
#include "analyze/steps/step_spans.h"
#include "base/run_sort.h"

namespace firelane::analyze {

namespace {

// Share of the time from the start of a Python function that calls nothing recorded to the next event: recording it
// takes at most so much. Thousands of short calls (split, strip, get) are the program's own work, too.
constexpr double kMostOfFunction = 0.6;

class Recorder {
 public:
  Recorder(const Model& model, const HostTime& host, const RecordingPrices& prices,
           const std::vector<Row>& last_work_of, Graph& graph)
      : model_(model),
        host_(host),
        costs_(prices.costs),
        steps_(prices.steps),
        pace_(prices.pace),
        given_(prices.charges),
        last_work_of_(last_work_of),
        graph_(graph) {}

  // Puts the estimated cost of recording each slice on the host edge in which the slice starts.
  void run() {
    graph_.charges.resize(graph_.chain_nodes.size());
    for (size_t chain = 0; chain < graph_.chain_nodes.size(); ++chain) {
      for (const LaneId lane : host_.chains[chain].lanes) {
        const auto l = static_cast<size_t>(lane);
        std::vector<RecorderCharge>& charges = graph_.charges[chain];
        charges.reserve(charges.size() + model_.lanes.host_end[l] - model_.lanes.host_begin[l]);
        for (Row row = model_.lanes.host_begin[l]; row < model_.lanes.host_end[l]; ++row) {
          charge_event(chain, model_.host_slices.start_ns[row], cost_of(row));
        }
      }
      if (chain < given_.size()) {
        for (const RecorderCharge& given : given_[chain]) charge(chain, given.time_ns, given.ns);
      }
      for (const HostSegment& segment : host_.chains[chain].segments) {
        const auto ns = static_cast<double>(segment.end_ns - segment.start_ns);
        if (segment.activity == Activity::kRecorder) charge(chain, segment.start_ns, ns);
        if (segment.activity == Activity::kNoCore)
          graph_.charges[chain].push_back({.time_ns = segment.start_ns, .ns = ns, .is_wait = true});
      }
    }
    for (size_t i = 0; i < model_.memory_events.size(); ++i) {
      const uint32_t chain = host_.chain_of_lane[static_cast<uint32_t>(model_.memory_events.lane[i])];
      if (chain != kNoRow) charge_event(chain, model_.memory_events.time_ns[i], costs_.memory);
    }
    for (size_t chain = 0; chain < graph_.chain_nodes.size(); ++chain) charge_edges(chain);
    for (GraphEdge& edge : graph_.edges) {
      if (edge.kind != EdgeKind::kLaunch) continue;  // about half of the call passes before the work is queued
      const int64_t least = std::min<int64_t>(edge.lag_ns, 2'000);
      edge.recorder_ns = std::min(static_cast<int64_t>(costs_.launch / 2), edge.lag_ns - least);
      // A call that loads a module first queues its work when that is done: the host's time, not latency.
      const int64_t call_ns = model_.host_slices.duration_ns[graph_.nodes[edge.source].row];
      edge.host_ns = std::max<int64_t>(0, std::min(call_ns, edge.lag_ns) - graph_.launch_latency_ns);
    }
  }

 private:
  double cost_of(Row row) const {
    switch (model_.host_slices.kind[row]) {
      case HostKind::kOp: return costs_.op + line_cost_of(row);
      case HostKind::kPython: return std::min(costs_.python, kMostOfFunction * static_cast<double>(alone_ns(row)));
      case HostKind::kAnnotation: return costs_.annotation + line_cost_of(row);
      case HostKind::kRuntime:
      case HostKind::kDriver: return last_work_of_[row] != kNoRow ? costs_.launch : costs_.call;
      default: return 0;
    }
  }

  double line_cost_of(Row row) const {
    const Row detail = model_.op_detail(row);
    return detail != kNoRow && model_.op_details.stack[detail] != kNoString ? costs_.line : 0;
  }

  // Until the next event of its thread, of a function that calls nothing that was recorded; no limit for others.
  int64_t alone_ns(Row row) const {
    const Row next = row + 1;
    const auto lane_end = model_.lanes.host_end[static_cast<size_t>(model_.host_slices.lane[row])];
    if (next >= lane_end || model_.host_slices.parent[next] == row) return INT64_MAX;
    return model_.host_slices.start_ns[next] - model_.host_slices.start_ns[row];
  }

  void charge_event(size_t chain, int64_t time_ns, double ns) {
    const size_t step = pace_.empty() || ns == 0 ? SIZE_MAX : step_at(steps_.steps, time_ns);
    charge(chain, time_ns, step == SIZE_MAX ? ns : ns * pace_[step]);
  }

  void charge(size_t chain, int64_t time_ns, double ns) {
    if (ns > 0) graph_.charges[chain].push_back({.time_ns = time_ns, .ns = ns});
  }

  void charge_edges(size_t chain) {
    std::vector<RecorderCharge>& charges = graph_.charges[chain];
    const std::vector<NodeId>& nodes = graph_.chain_nodes[chain];
    run_sort(charges.data(), charges.size(),
             [](const RecorderCharge& a, const RecorderCharge& b) { return a.time_ns < b.time_ns; });
    size_t at = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const size_t first = at;
      double sum = 0;
      double waited = 0;
      for (; at < charges.size() && charges[at].time_ns < graph_.nodes[nodes[i]].time_ns; ++at)
        (charges[at].is_wait ? waited : sum) += charges[at].ns;
      if (i == 0 || (sum == 0 && waited == 0)) continue;
      GraphEdge& edge = graph_.edges[graph_.edges_begin(nodes[i])];  // the host edge comes first
      edge.host_ns = std::clamp<int64_t>(static_cast<int64_t>(waited), 0, edge.lag_ns);
      edge.recorder_ns = std::min(static_cast<int64_t>(sum), edge.lag_ns - edge.host_ns);
      for (size_t c = first; c < at; ++c) {
        const double whole = charges[c].is_wait ? waited : sum;
        const int64_t counted_ns = charges[c].is_wait ? edge.host_ns : edge.recorder_ns;
        if (whole > 0) charges[c].ns *= static_cast<double>(counted_ns) / whole;
      }
    }
  }

  const Model& model_;
  const HostTime& host_;
  const SliceCosts& costs_;
  const StepList& steps_;
  const std::vector<double>& pace_;
  const RecorderCharges& given_;
  const std::vector<Row>& last_work_of_;
  Graph& graph_;
};

class Window {
 public:
  Window(const Model& model, const StepList& steps, Graph& graph) : model_(model), steps_(steps), graph_(graph) {}

  void run() {
    if (graph_.chain_nodes.empty()) return;
    std::unordered_map<int64_t, NodeId> boundary;
    for (const NodeId node : graph_.chain_nodes[0]) {
      if (graph_.nodes[node].row == kNoRow) boundary[graph_.nodes[node].time_ns] = node;
    }
    for (const FoundStep& step : steps_.steps) {
      graph_.step_nodes.push_back({boundary.at(step.start_ns), boundary.at(step.end_ns)});
    }
    graph_.window_start = boundary.at(steps_.window.start_ns);
    graph_.window_end = boundary.at(steps_.window.end_ns);
    std::vector<NodeId> in_window;
    std::vector<NodeId> first(model_.lanes.size(), kNoNode);
    std::vector<NodeId> last(model_.lanes.size(), kNoNode);
    for (NodeId node = 0; node < graph_.nodes.size(); ++node) {
      if (!graph_.nodes[node].is_device() || !is_counted(model_, graph_.nodes[node].row)) continue;
      const int64_t launched = launch_start(model_, graph_.nodes[node].row);
      const int64_t belongs = launched == kNoNumber ? graph_.nodes[node].time_ns : launched;
      if (belongs < steps_.window.start_ns || belongs >= steps_.window.end_ns) continue;
      const auto lane = static_cast<uint32_t>(model_.device_slices.lane[graph_.nodes[node].row]);
      if (first[lane] == kNoNode) first[lane] = node;
      if (graph_.has_data) in_window.push_back(node);
      last[lane] = node;
    }
    for (size_t lane = 0; lane < last.size(); ++lane) {
      if (last[lane] == kNoNode) continue;
      graph_.first_work.push_back(first[lane]);
      graph_.tail.push_back(last[lane]);
    }
    if (graph_.has_data) keep_order_outside(in_window);
    find_head();
  }

 private:
  // Order is given up inside of the window alone, which begins with the work before it as it was. Work that overlaps
  // the last of its stream and outlives it does not end the window, as recorded.
  void keep_order_outside(const std::vector<NodeId>& in_window) {
    const auto end_of = [&](NodeId node) { return graph_.nodes[node].time_ns + graph_.nodes[node].duration_ns; };
    int64_t end_ns = graph_.nodes[graph_.window_end].time_ns;
    for (const NodeId node : graph_.tail) end_ns = std::max(end_ns, end_of(node));
    auto next = in_window.begin();
    for (NodeId node = 0; node < graph_.nodes.size(); ++node) {
      if (next != in_window.end() && *next == node) {
        if (end_of(node) <= end_ns) graph_.window_work.push_back(node);
        ++next;
        continue;
      }
      for (size_t e = graph_.edges_begin(node); e < graph_.edges_end(node); ++e) graph_.edges[e].is_order_only = false;
    }
  }

  bool waited_for_nothing_known(NodeId node) const {
    for (size_t e = graph_.edges_begin(node); e < graph_.edges_end(node); ++e) {
      if (graph_.edges[e].kind == EdgeKind::kLaunch) return graph_.edges[e].lag_ns > kBacklogNs;
    }
    return true;
  }

  // Per stream the last work launched before the window: it may still run when the window begins. When the first
  // piece of a stream starts long after its launch, such work was there but is not in the trace.
  void find_head() {
    each_stream_start(model_, steps_.window.start_ns, steps_.window.end_ns, [&](Row row, Row before) {
      const NodeId node = graph_.node_of_device[row];
      const int64_t waited_ns = graph_.nodes[node].time_ns - launch_start(model_, row);
      if (before != kNoRow) {
        graph_.head.push_back({.source = graph_.node_of_device[before], .kind = EdgeKind::kStream, .from_end = true});
      } else if (waited_ns > kBacklogNs && waited_for_nothing_known(node)) {
        graph_.head.push_back({.source = node, .kind = EdgeKind::kStream, .lag_ns = -graph_.stream_gap_ns});
      }
    });
  }

  const Model& model_;
  const StepList& steps_;
  Graph& graph_;
};

}  // namespace

void charge_recording(const Model& model, const HostTime& host, const RecordingPrices& prices,
                      const std::vector<Row>& last_work_of, Graph& graph) {
  Recorder(model, host, prices, last_work_of, graph).run();
}

void find_window(const Model& model, const StepList& steps, Graph& graph) { Window(model, steps, graph).run(); }

}  // namespace firelane::analyze
