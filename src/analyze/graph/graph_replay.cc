// Replaying the graph: one pass over the nodes in their order, each at the latest of its edges.
#include <algorithm>
#include <cmath>

#include "analyze/device/device_work.h"
#include "analyze/graph/graph.h"
#include "analyze/steps/step_spans.h"

namespace firelane::analyze {

namespace {

// However much recording is estimated to cost, this part of a stretch of host time stays.
constexpr double kLeastLeft = 0.1;

int64_t scaled(int64_t ns, double keep) { return keep == 1 ? ns : std::llround(static_cast<double>(ns) * keep); }

// What the cuts take out of an edge's stretch of host time.
struct EdgeCut {
  double part = 0;      // of the stretch, 0..1
  double recorder = 0;  // ns of recording's cost that lie in this part
};

// By edge. Empty when there are no cuts.
std::vector<EdgeCut> edge_cuts(const Graph& graph, std::vector<HostCut> cuts) {
  const auto chain_of = [&](const HostCut& cut) { return graph.chain_of_lane[static_cast<uint32_t>(cut.lane)]; };
  std::erase_if(cuts, [&](const HostCut& cut) { return chain_of(cut) == kNoRow || cut.end_ns <= cut.start_ns; });
  if (cuts.empty()) return {};
  std::vector<EdgeCut> taken(graph.edges.size());
  std::sort(cuts.begin(), cuts.end(), [&](const HostCut& a, const HostCut& b) {
    return chain_of(a) != chain_of(b) ? chain_of(a) < chain_of(b) : a.start_ns < b.start_ns;
  });
  int64_t done_ns = INT64_MIN;  // of this chain, cuts have reached to here
  uint32_t chain = kNoRow;
  auto charge = graph.charges.front().begin();
  for (const HostCut& cut : cuts) {
    if (chain_of(cut) != chain) {
      done_ns = INT64_MIN;
      chain = chain_of(cut);
      charge = graph.charges[chain].begin();
    }
    const int64_t start = std::max(cut.start_ns, done_ns);
    done_ns = std::max(done_ns, cut.end_ns);
    const std::vector<NodeId>& nodes = graph.chain_nodes[chain];
    const auto sum_before = [&](int64_t time_ns) {
      double sum = 0;
      for (; charge != graph.charges[chain].end() && charge->time_ns < time_ns; ++charge) sum += charge->ns;
      return sum;
    };
    sum_before(start);
    auto node =
        std::partition_point(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.nodes[id].time_ns <= start; });
    for (; node != nodes.end(); ++node) {
      if (node == nodes.begin()) continue;
      const int64_t from = graph.nodes[*std::prev(node)].time_ns;
      const int64_t to = graph.nodes[*node].time_ns;
      if (from >= cut.end_ns) break;
      const int64_t part = std::min(to, cut.end_ns) - std::max(from, start);
      if (part <= 0 || to == from) continue;
      EdgeCut& edge = taken[graph.edges_begin(*node)];
      edge.part += (1 - cut.keep) * static_cast<double>(part) / static_cast<double>(to - from);
      edge.recorder += (1 - cut.keep) * sum_before(std::min(to, cut.end_ns));
    }
  }
  return taken;
}

class Player {
 public:
  Player(const Graph& graph, const WhatIf& change, const ReplayOptions& options, const Replay* unchanged = nullptr)
      : graph_(graph), change_(change), options_(options), cuts_(edge_cuts(graph, change.host)), waits_(change.waits) {
    if (unchanged != nullptr && change.keep_host == 1 && change.keep_latency == 1) known_lags_ = &unchanged->lag_ns;
    std::sort(waits_.begin(), waits_.end());
    if (change.device.empty()) return;
    keep_device_.assign(graph.nodes.size(), 1.0);
    for (const DeviceCut& cut : change.device) {
      const NodeId node = cut.row < graph.node_of_device.size() ? graph.node_of_device[cut.row] : kNoNode;
      if (node != kNoNode) keep_device_[node] = cut.keep;
    }
  }

  // With `kWhole` also which edge decided and every lag. Repeated as the options say.
  template <bool kWhole>
  Replay run() {
    play<kWhole>({});
    if (!options_.repeated || graph_.window_start == kNoNode) return std::move(out_);
    constexpr int kMostRepeats = 4;
    std::vector<int64_t> before;
    for (int i = 0; i < kMostRepeats; ++i) {
      std::vector<int64_t> behind = behind_at_end();
      if (behind == before) break;
      play<kWhole>(behind);
      before = std::move(behind);
    }
    return std::move(out_);
  }

 private:
  // How far each stream of graph.tail is behind the host at the end of the window.
  std::vector<int64_t> behind_at_end() const {
    std::vector<int64_t> behind;
    for (const NodeId node : graph_.tail) {
      const int64_t end_ns = out_.time_ns[node] + out_.duration_ns[node];
      behind.push_back(std::max<int64_t>(0, end_ns - out_.time_ns[graph_.window_end]));
    }
    return behind;
  }

  // `behind_ns`: for each stream of graph.tail, how far it is behind the host as the window begins; empty: not at all.
  template <bool kWhole>
  void play(const std::vector<int64_t>& behind_ns) {
    const size_t count = graph_.nodes.size();
    behind_of_.clear();
    for (size_t i = 0; i < behind_ns.size(); ++i) behind_of_.push_back({graph_.first_work[i], behind_ns[i]});
    std::sort(behind_of_.begin(), behind_of_.end());
    out_.time_ns.resize(count);
    out_.duration_ns.resize(count);
    if constexpr (kWhole) {
      out_.binding.assign(count, kNoRow);
      out_.lag_ns.resize(graph_.edges.size());
    }
    for (NodeId node = 0; node < count; ++node) visit<kWhole>(node);
    if (graph_.window_start == kNoNode) return;
    out_.start_ns = out_.time_ns[graph_.window_start];
    for (const GraphEdge& head : graph_.head) {
      const int64_t ended = out_.time_ns[head.source] + (head.from_end ? out_.duration_ns[head.source] : 0);
      out_.start_ns = std::max(out_.start_ns, ended + head.lag_ns);
    }
    for (const int64_t behind : behind_ns) {
      out_.start_ns = std::max(out_.start_ns, out_.time_ns[graph_.window_start] + behind);
    }
    out_.end_ns = std::max(out_.start_ns, out_.time_ns[graph_.window_end]);
    out_.last = graph_.window_end;
    // Without the order on streams the last to be launched need not be the last to end.
    for (const NodeId node : change_.data_order_only&& graph_.has_data ? graph_.window_work : graph_.tail) {
      const int64_t end = out_.time_ns[node] + out_.duration_ns[node];
      if (end <= out_.end_ns) continue;
      out_.end_ns = end;
      out_.last = node;
    }
  }

  template <bool kWhole>
  void visit(NodeId node) {
    const GraphNode& self = graph_.nodes[node];
    out_.duration_ns[node] = self.is_device() ? duration_of(node) : 0;
    const size_t end = graph_.edges_end(node);
    int64_t latest = INT64_MIN;
    for (size_t e = self.first_edge; e < end; ++e) {
      const GraphEdge& edge = graph_.edges[e];
      const int64_t lag_ns = lag_at(e);
      if constexpr (kWhole) out_.lag_ns[e] = lag_ns;
      if (edge.is_order_only && change_.data_order_only) continue;
      if (edge.kind == EdgeKind::kSync && std::binary_search(waits_.begin(), waits_.end(), self.row)) continue;
      const int64_t at = out_.time_ns[edge.source] + (edge.from_end ? out_.duration_ns[edge.source] : 0) + lag_ns;
      if (at <= latest) continue;
      latest = at;
      if constexpr (kWhole) out_.binding[node] = static_cast<uint32_t>(e);
    }
    out_.time_ns[node] = latest == INT64_MIN ? self.time_ns : latest;
    if (!behind_of_.empty() && self.is_device()) wait_for_window_before<kWhole>(node);
  }

  template <bool kWhole>
  void wait_for_window_before(NodeId node) {
    const auto found =
        std::lower_bound(behind_of_.begin(), behind_of_.end(), std::pair<NodeId, int64_t>{node, INT64_MIN});
    if (found == behind_of_.end() || found->first != node || found->second <= 0) return;
    const int64_t free_ns = out_.time_ns[graph_.window_start] + found->second + graph_.stream_gap_ns;
    if (free_ns <= out_.time_ns[node]) return;
    out_.time_ns[node] = free_ns;
    if constexpr (kWhole) out_.binding[node] = kNoRow;
  }

  int64_t duration_of(NodeId node) const {
    const GraphNode& self = graph_.nodes[node];
    double keep = self.device_class == DeviceClass::kCompute         ? change_.keep_kernels
                  : self.device_class == DeviceClass::kCommunication ? change_.keep_communication
                                                                     : change_.keep_copies;
    if (!keep_device_.empty()) keep *= keep_device_[node];
    return scaled(self.duration_ns, keep);
  }

  int64_t lag_at(size_t e) const {
    return known_lags_ != nullptr && (cuts_.empty() || cuts_[e].part == 0) ? (*known_lags_)[e] : lag_of(e);
  }

  int64_t lag_of(size_t e) const {
    const GraphEdge& edge = graph_.edges[e];
    if (edge.kind == EdgeKind::kHost) {
      // A double does not hold every lag of months.
      if (options_.recording_removed == 0 && cuts_.empty()) return scaled(edge.lag_ns, change_.keep_host);
      const auto lag = static_cast<double>(edge.lag_ns);
      // Of the cost of recording, this part is taken out.
      const double removed =
          edge.recorder_ns <= 0
              ? 0
              : std::min(options_.recording_removed, (1 - kLeastLeft) * lag / static_cast<double>(edge.recorder_ns));
      double left = lag - removed * static_cast<double>(edge.recorder_ns);
      if (!cuts_.empty()) {
        // A cut takes a stretch out without what recording had added to it: that is gone already.
        const double cut = std::clamp(cuts_[e].part, 0.0, 1.0) * lag;
        left -= cut - std::min(removed * cuts_[e].recorder, (1 - kLeastLeft) * cut);
      }
      return scaled(std::llround(std::max(left, 0.0)), change_.keep_host);
    }
    if (edge.kind == EdgeKind::kLaunch || edge.kind == EdgeKind::kStream || edge.kind == EdgeKind::kData) {
      const double removed = std::min(1.0, options_.recording_removed) * static_cast<double>(edge.recorder_ns);
      const int64_t left = edge.lag_ns - std::llround(removed);
      const int64_t host = std::min(edge.host_ns, left);
      return scaled(left - host, change_.keep_latency) + scaled(host, change_.keep_host);
    }
    return edge.lag_ns;
  }

  const Graph& graph_;
  const WhatIf& change_;
  const ReplayOptions& options_;
  const std::vector<int64_t>* known_lags_ = nullptr;
  std::vector<EdgeCut> cuts_;
  std::vector<Row> waits_;
  std::vector<double> keep_device_;
  std::vector<std::pair<NodeId, int64_t>> behind_of_;  // by node
  Replay out_;
};

}  // namespace

std::vector<Interval> step_spans(const Model& model, const Graph& graph, const Replay& played, const StepList& steps) {
  std::vector<size_t> judged;  // indices of steps
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    if (!steps.steps[i].warm_up) judged.push_back(i);
  }
  std::vector<Interval> spans;
  if (judged.empty() || graph.window_start == kNoNode) return spans;
  std::vector<int64_t> device_end(steps.steps.size(), INT64_MIN);  // of what each step launched
  for (NodeId node = 0; node < graph.nodes.size(); ++node) {
    if (!graph.nodes[node].is_device() || !is_counted(model, graph.nodes[node].row)) continue;
    const size_t step = step_of_work(model, steps.steps, graph.nodes[node].row);
    if (step == SIZE_MAX) continue;
    device_end[step] = std::max(device_end[step], played.time_ns[node] + played.duration_ns[node]);
  }
  std::vector<StepMoments> moments;
  for (const size_t step : judged) {
    const auto [begin, end] = graph.step_nodes[step];
    moments.push_back({.begin_ns = played.time_ns[begin],
                       .end_ns = played.time_ns[end],
                       .device_end_ns = std::min(device_end[step], played.end_ns),
                       .followed = is_followed(steps.steps, step)});
  }
  moments.back().end_ns = played.end_ns;
  return lay_spans(moments, played.start_ns);
}

Replay replay(const Graph& graph, const WhatIf& change, const ReplayOptions& options) {
  return Player(graph, change, options).run<true>();
}

int64_t replay_total_ns(const Graph& graph, const WhatIf& change, const ReplayOptions& options,
                        const Replay* unchanged) {
  return Player(graph, change, options, unchanged).run<false>().total_ns();
}

}  // namespace firelane::analyze
