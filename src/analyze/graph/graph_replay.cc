// Replaying the graph: one pass over the nodes in their order, each at the latest of its edges.
#include <algorithm>
#include <cmath>

#include "analyze/device/device_work.h"
#include "analyze/graph/graph.h"
#include "analyze/steps/step_spans.h"
#include "base/gallop.h"
#include "base/run_sort.h"

namespace firelane::analyze {

namespace {

// However much recording is estimated to cost, this part of a stretch of host time stays.
constexpr double kLeastLeft = 0.1;

int64_t scaled(int64_t ns, double keep) { return keep == 1 ? ns : std::llround(static_cast<double>(ns) * keep); }

}  // namespace

PreparedChange::PreparedChange(const Graph& graph, const WhatIf& change)
    : keep_host_(change.keep_host),
      keep_latency_(change.keep_latency),
      data_order_only_(change.data_order_only && graph.has_data),
      waits_(change.waits) {
  std::sort(waits_.begin(), waits_.end());
  cut_edges(graph, change.host);
  change_durations(graph, change);
  is_none_ = keep_host_ == 1 && keep_latency_ == 1 && !data_order_only_ && cuts_.empty() && waits_.empty() &&
             durations_ns_.empty();
}

void PreparedChange::cut_edges(const Graph& graph, std::vector<HostCut> cuts) {
  const auto chain_of = [&](const HostCut& cut) { return graph.chain_of_lane[static_cast<uint32_t>(cut.lane)]; };
  std::erase_if(cuts, [&](const HostCut& cut) { return chain_of(cut) == kNoRow || cut.end_ns <= cut.start_ns; });
  run_sort(cuts.data(), cuts.size(), [&](const HostCut& a, const HostCut& b) {
    return chain_of(a) != chain_of(b) ? chain_of(a) < chain_of(b) : a.start_ns < b.start_ns;
  });
  int64_t done_ns = INT64_MIN;  // of this chain, cuts have reached to here
  uint32_t chain = kNoRow;
  std::vector<RecorderCharge>::const_iterator charge, last_charge;
  std::vector<NodeId>::const_iterator at;
  for (const HostCut& cut : cuts) {
    if (chain_of(cut) != chain) {
      done_ns = INT64_MIN;
      chain = chain_of(cut);
      charge = graph.charges[chain].begin();
      last_charge = graph.charges[chain].end();
      at = graph.chain_nodes[chain].begin();
    }
    const int64_t start = std::max(cut.start_ns, done_ns);
    done_ns = std::max(done_ns, cut.end_ns);
    const std::vector<NodeId>& nodes = graph.chain_nodes[chain];
    charge = gallop(charge, last_charge, [&](const RecorderCharge& each) { return each.time_ns < start; });
    at = gallop(at, nodes.end(), [&](NodeId id) { return graph.nodes[id].time_ns <= start; });
    for (auto node = at; node != nodes.end(); ++node) {
      if (node == nodes.begin()) continue;
      const int64_t from = graph.nodes[*std::prev(node)].time_ns;
      const int64_t to = graph.nodes[*node].time_ns;
      if (from >= cut.end_ns) break;
      const int64_t part = std::min(to, cut.end_ns) - std::max(from, start);
      if (part <= 0 || to == from) continue;
      const auto edge = static_cast<uint32_t>(graph.edges_begin(*node));
      if (cuts_.empty() || cuts_.back().edge != edge) cuts_.push_back({.edge = edge});
      double recorder = 0;
      double waited = 0;
      for (; charge != last_charge && charge->time_ns < std::min(to, cut.end_ns); ++charge)
        (charge->is_wait ? waited : recorder) += charge->ns;
      cuts_.back().part += (1 - cut.keep) * static_cast<double>(part) / static_cast<double>(to - from);
      cuts_.back().recorder += (1 - cut.keep) * recorder;
      cuts_.back().waited += (1 - cut.keep) * waited;
    }
  }
  // Calls that compile what they launch (Ascend): work begins earlier when the call before it takes less.
  for (NodeId node = 0; graph.has_handoffs && !cuts.empty() && node < graph.nodes.size(); ++node) {
    const size_t e = graph.edges_begin(node);
    if (!graph.nodes[node].is_device() || e == graph.edges_end(node)) continue;
    const GraphEdge& edge = graph.edges[e];
    if (edge.kind != EdgeKind::kLaunch || edge.lag_ns <= 0) continue;
    const GraphNode& call = graph.nodes[edge.source];
    const auto after = std::partition_point(cuts.begin(), cuts.end(), [&](const HostCut& cut) {
      return chain_of(cut) != call.chain ? chain_of(cut) < call.chain : cut.start_ns <= call.time_ns;
    });
    if (after == cuts.begin() || chain_of(*std::prev(after)) != call.chain) continue;
    const HostCut& cut = *std::prev(after);
    const int64_t covered = std::min(cut.end_ns, call.time_ns + edge.lag_ns) - call.time_ns;
    if (covered <= 0) continue;
    const double part = (1 - cut.keep) * static_cast<double>(covered) / static_cast<double>(edge.lag_ns);
    cuts_.push_back({.edge = static_cast<uint32_t>(e), .part = part});
  }
  std::erase_if(cuts_, [](const Cut& cut) { return cut.part == 0; });
  // Chains come one after another, and their nodes lie between each other.
  run_sort(cuts_.data(), cuts_.size(), [](const Cut& a, const Cut& b) { return a.edge < b.edge; });
}

void PreparedChange::change_durations(const Graph& graph, const WhatIf& change) {
  const auto keep_of = [&](const GraphNode& node) {
    return node.device_class == DeviceClass::kCompute         ? change.keep_kernels
           : node.device_class == DeviceClass::kCommunication ? change.keep_communication
                                                              : change.keep_copies;
  };
  const auto is_cut = [](const DeviceCut& cut) { return cut.keep != 1; };
  const bool by_class = change.keep_kernels != 1 || change.keep_communication != 1 || change.keep_copies != 1;
  if (!by_class && std::none_of(change.device.begin(), change.device.end(), is_cut)) return;
  durations_ns_.reserve(graph.nodes.size());
  for (const GraphNode& node : graph.nodes) {
    durations_ns_.push_back(by_class ? scaled(node.duration_ns, keep_of(node)) : node.duration_ns);
  }
  for (const DeviceCut& cut : change.device) {
    const NodeId node = cut.row < graph.node_of_device.size() ? graph.node_of_device[cut.row] : kNoNode;
    if (node == kNoNode) continue;
    const GraphNode& work = graph.nodes[node];
    durations_ns_[node] = scaled(work.duration_ns, keep_of(work) * cut.keep);
  }
}

class Player {
 public:
  // REQUIRES: `unchanged` is a whole replay.
  Player(const Graph& graph, const PreparedChange& change, const ReplayOptions& options,
         const Replay* unchanged = nullptr)
      : graph_(graph), change_(change), options_(options) {
    const bool lags_are_known = unchanged != nullptr && change.keep_host_ == 1 && change.keep_latency_ == 1;
    if (lags_are_known) {
      known_lags_ns_ = unchanged->lag_ns.data();
    } else {
      lags_ns_.reserve(graph.edges.size());
      for (const GraphEdge& edge : graph.edges) lags_ns_.push_back(lag_of(edge, nullptr));
    }
    if (!change.durations_ns_.empty()) {
      known_durations_ns_ = change.durations_ns_.data();
    } else if (unchanged != nullptr) {
      known_durations_ns_ = unchanged->duration_ns.data();
    } else {
      durations_ns_.reserve(graph.nodes.size());
      for (const GraphNode& node : graph.nodes) durations_ns_.push_back(node.duration_ns);
    }
    if (lags_are_known) {
      new_lags_ns_.reserve(change.cuts_.size());
      for (const PreparedChange::Cut& cut : change.cuts_) new_lags_ns_.push_back(lag_of(graph.edges[cut.edge], &cut));
    } else {
      for (const PreparedChange::Cut& cut : change.cuts_) lags_ns_[cut.edge] = lag_of(graph.edges[cut.edge], &cut);
    }
  }

  // Also which edge decided, and every lag. Repeated as the options say.
  Replay whole() {
    play_all<true>();
    if (known_durations_ns_ != nullptr) durations_ns_.assign(durations(), durations() + graph_.nodes.size());
    if (known_lags_ns_ != nullptr) lags_ns_.assign(lags(), lags() + graph_.edges.size());
    out_.duration_ns = std::move(durations_ns_);
    out_.lag_ns = std::move(lags_ns_);
    return std::move(out_);
  }

  int64_t total_ns() {
    play_all<false>();
    return out_.total_ns();
  }

  int64_t host_ns() {
    play_all<false>();
    return host_window_ns();
  }

 private:
  const int64_t* lags() const { return known_lags_ns_ != nullptr ? known_lags_ns_ : lags_ns_.data(); }
  const int64_t* durations() const {
    return known_durations_ns_ != nullptr ? known_durations_ns_ : durations_ns_.data();
  }
  int64_t host_window_ns() const { return out_.time_ns[graph_.window_end] - out_.time_ns[graph_.window_start]; }
  int64_t end_of(NodeId node) const { return out_.time_ns[node] + durations()[node]; }

  template <bool kWhole>
  void play_all() {
    out_.time_ns.resize(graph_.nodes.size());
    if constexpr (kWhole) out_.binding.resize(graph_.nodes.size());
    play<kWhole>({});
    if (!options_.repeated || graph_.window_start == kNoNode) return;
    constexpr int kMostRepeats = 4;
    std::vector<int64_t> before;
    for (int i = 0; i < kMostRepeats; ++i) {
      std::vector<int64_t> behind = behind_at_end();
      if (behind == before) return;
      if (i == 0 && !delays_any(behind)) return measure(behind);
      play<kWhole>(behind);
      before = std::move(behind);
    }
  }

  // How far each stream of graph.tail is behind the host at the end of the window.
  std::vector<int64_t> behind_at_end() const {
    std::vector<int64_t> behind;
    for (const NodeId node : graph_.tail) {
      behind.push_back(std::max<int64_t>(0, end_of(node) - out_.time_ns[graph_.window_end]));
    }
    return behind;
  }

  // Whether work of the window would start later than it did in a replay in which nothing was behind.
  bool delays_any(const std::vector<int64_t>& behind_ns) const {
    for (size_t i = 0; i < behind_ns.size(); ++i) {
      if (behind_ns[i] > 0 && free_again_ns(behind_ns[i]) > out_.time_ns[graph_.first_work[i]]) return true;
    }
    return false;
  }
  int64_t free_again_ns(int64_t behind_ns) const {
    return out_.time_ns[graph_.window_start] + behind_ns + graph_.stream_gap_ns;
  }

  // `behind_ns`: for each stream of graph.tail, how far it is behind the host as the window begins; empty: not at all.
  template <bool kWhole>
  void play(const std::vector<int64_t>& behind_ns) {
    std::vector<std::pair<NodeId, int64_t>> behind_of;  // by node
    for (size_t i = 0; i < behind_ns.size(); ++i) {
      if (behind_ns[i] > 0) behind_of.push_back({graph_.first_work[i], behind_ns[i]});
    }
    std::sort(behind_of.begin(), behind_of.end());
    behind_of.push_back({kNoNode, 0});
    auto behind = behind_of.begin();
    const int64_t* const lags_ns = lags();
    const int64_t* const durations_ns = durations();
    int64_t* const times_ns = out_.time_ns.data();
    const size_t count = graph_.nodes.size();
    size_t changed = 0;  // of new_lags_ns_
    const auto edge_of_changed = [&] {
      return changed < new_lags_ns_.size() ? size_t{change_.cuts_[changed].edge} : SIZE_MAX;
    };
    size_t next_changed = edge_of_changed();
    size_t e = 0;
    for (NodeId node = 0; node < count; ++node) {
      const size_t end = graph_.edges_end(node);
      int64_t latest = INT64_MIN;
      uint32_t binding = kNoRow;
      for (; e < end; ++e) {
        int64_t lag_ns = lags_ns[e];
        if (e == next_changed) {
          lag_ns = new_lags_ns_[changed++];
          next_changed = edge_of_changed();
        }
        const EdgeLink link = graph_.links[e];
        if (link.is_sync() && waits_no_more(node)) continue;
        if (change_.data_order_only_ && graph_.edges[e].is_order_only) continue;
        const NodeId source = link.source();
        const int64_t at = times_ns[source] + (link.from_end() ? durations_ns[source] : 0) + lag_ns;
        if (at <= latest) continue;
        latest = at;
        binding = static_cast<uint32_t>(e);
      }
      times_ns[node] = latest == INT64_MIN ? graph_.nodes[node].time_ns : latest;
      if (node == behind->first) {
        const int64_t free_ns = free_again_ns(behind->second);
        ++behind;
        if (free_ns > times_ns[node]) {
          times_ns[node] = free_ns;
          binding = kNoRow;
        }
      }
      if constexpr (kWhole) out_.binding[node] = binding;
    }
    if (graph_.window_start != kNoNode) measure(behind_ns);
  }

  bool waits_no_more(NodeId node) const {
    return !change_.waits_.empty() &&
           std::binary_search(change_.waits_.begin(), change_.waits_.end(), graph_.nodes[node].row);
  }

  // When the window starts and ends.
  void measure(const std::vector<int64_t>& behind_ns) {
    out_.start_ns = out_.time_ns[graph_.window_start];
    for (const GraphEdge& head : graph_.head) {
      const int64_t ended = head.from_end ? end_of(head.source) : out_.time_ns[head.source];
      out_.start_ns = std::max(out_.start_ns, ended + head.lag_ns);
    }
    for (const int64_t behind : behind_ns) {
      out_.start_ns = std::max(out_.start_ns, out_.time_ns[graph_.window_start] + behind);
    }
    out_.end_ns = out_.time_ns[graph_.window_end];
    out_.last = graph_.window_end;
    // Without the order on streams the last to be launched need not be the last to end.
    for (const NodeId node : change_.data_order_only_ ? graph_.window_work : graph_.tail) {
      if (end_of(node) <= out_.end_ns) continue;
      out_.end_ns = end_of(node);
      out_.last = node;
    }
    if (options_.repeated) {
      // A device that was behind and has caught up does so once: of windows that follow each other, each takes what the
      // host takes for it.
      if (behind_ns.empty()) host_alone_ns_ = host_window_ns();
      const int64_t least_ns = out_.time_ns[graph_.window_start];
      out_.start_ns = std::min(out_.start_ns, std::max(least_ns, out_.end_ns - host_alone_ns_));
    }
    if (out_.end_ns >= out_.start_ns) return;
    out_.end_ns = out_.start_ns;
    out_.last = graph_.window_end;
  }

  // `cut`: what is taken out of the edge; null: nothing.
  int64_t lag_of(const GraphEdge& edge, const PreparedChange::Cut* cut) const {
    if (edge.kind == EdgeKind::kHost) {
      // A double does not hold every lag of months.
      if (options_.recording_removed == 0 && cut == nullptr) return scaled(edge.lag_ns, change_.keep_host_);
      const bool without_waits = options_.recording_removed > 0;
      const auto lag = static_cast<double>(edge.lag_ns - (without_waits ? edge.host_ns : 0));
      // This part of the cost of recording is subtracted.
      const double removed =
          edge.recorder_ns <= 0
              ? 0
              : std::min(options_.recording_removed, (1 - kLeastLeft) * lag / static_cast<double>(edge.recorder_ns));
      double left = lag - removed * static_cast<double>(edge.recorder_ns);
      if (cut != nullptr) {
        // A cut takes a stretch out without what recording, and the wait for a core, had added to it: that is gone
        // already.
        const double whole = std::clamp(cut->part, 0.0, 1.0) * static_cast<double>(edge.lag_ns);
        const double taken = std::clamp(whole - (without_waits ? cut->waited : 0), 0.0, lag);
        left -= taken - std::min(removed * cut->recorder, (1 - kLeastLeft) * taken);
      }
      return scaled(std::llround(std::max(left, 0.0)), change_.keep_host_);
    }
    if (edge.kind == EdgeKind::kLaunch || edge.kind == EdgeKind::kStream || edge.kind == EdgeKind::kData) {
      const double removed = std::min(1.0, options_.recording_removed) * static_cast<double>(edge.recorder_ns);
      int64_t left = edge.lag_ns - std::llround(removed);
      if (cut != nullptr) left = std::max<int64_t>(0, left - scaled(edge.lag_ns, std::clamp(cut->part, 0.0, 1.0)));
      const int64_t host = std::min(edge.host_ns, left);
      return scaled(left - host, change_.keep_latency_) + scaled(host, change_.keep_host_);
    }
    return edge.lag_ns;
  }

  const Graph& graph_;
  const PreparedChange& change_;
  const ReplayOptions& options_;
  // By edge and by node: of a replay that is known, or our own.
  const int64_t* known_lags_ns_ = nullptr;
  const int64_t* known_durations_ns_ = nullptr;
  std::vector<int64_t> lags_ns_;
  std::vector<int64_t> durations_ns_;
  std::vector<int64_t> new_lags_ns_;  // where they are known: by cut
  int64_t host_alone_ns_ = 0;         // for the window, when nothing was behind as it began
  Replay out_;
};

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
  return Player(graph, PreparedChange(graph, change), options).whole();
}

int64_t replay_total_ns(const Graph& graph, const PreparedChange& change, const ReplayOptions& options,
                        const Replay* unchanged) {
  return Player(graph, change, options, unchanged).total_ns();
}

int64_t replay_total_ns(const Graph& graph, const WhatIf& change, const ReplayOptions& options,
                        const Replay* unchanged) {
  return replay_total_ns(graph, PreparedChange(graph, change), options, unchanged);
}

int64_t replay_host_ns(const Graph& graph, const ReplayOptions& options) {
  return Player(graph, PreparedChange(graph, {}), options).host_ns();
}

}  // namespace firelane::analyze
