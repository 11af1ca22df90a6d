#include "analyze/graph/graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analyze/device/device_work.h"
#include "analyze/graph/graph_device.h"
#include "analyze/graph/graph_finish.h"
#include "analyze/graph/graph_work.h"
#include "analyze/host/host_calls.h"
#include "base/check.h"
#include "base/run_sort.h"

namespace firelane::analyze {

namespace {

constexpr int64_t kBlockingCallNs = 5'000;  // a blocking call that finds nothing to wait for
constexpr int64_t kReturnNs = 3'000;        // from the end of the awaited work to the call's return
constexpr int64_t kQueueCapacity = 1'000;   // launches ahead of the device; the driver blocks at about 1,024
constexpr int64_t kSlowLaunchNs = 50'000;
constexpr int64_t kHandoffGapNs = 20'000;  // an idle thread that begins again was woken by another
constexpr int64_t kDrainedNs = 50'000;     // a wait for a queue of tasks ends this shortly after the last of them

struct Moment {
  int64_t time_ns;
  Row row;
  enum class What : uint8_t { kBoundary, kLaunch, kWaitBegin, kWaitEnd, kQueueEnd, kHandedOver } what;
};

// A task that one thread gives to another.
struct Handoff {
  Row from = kNoRow;  // host slices
  Row to = kNoRow;
};

// The flows from a thread to the one that works for it: torch_npu's queue in front of CANN.
std::vector<Handoff> find_handoffs(const Model& model, const HostTime& host) {
  std::vector<Handoff> found;
  const StringId category = model.strings.find("async_task_queue");
  if (category == kNoString) return found;
  const auto chain_of = [&](Row row) { return host.chain_of_lane[static_cast<size_t>(model.host_slices.lane[row])]; };
  for (size_t i = 0; i < model.flows.size(); ++i) {
    const SliceRef from = model.flows.from[i], to = model.flows.to[i];
    if (model.flows.category[i] != category || from.on_device || to.on_device) continue;
    if (from.row == kNoRow || to.row == kNoRow || chain_of(from.row) == chain_of(to.row)) continue;
    if (chain_of(from.row) == kNoRow || chain_of(to.row) == kNoRow) continue;
    if (model.host_slices.start_ns[from.row] <= model.host_slices.start_ns[to.row]) found.push_back({from.row, to.row});
  }
  std::sort(found.begin(), found.end(), [](const Handoff& a, const Handoff& b) { return a.to < b.to; });
  return found;
}

class Builder {
 public:
  Builder(const Model& model, const HostTime& host, const StepList& steps, const SliceCosts& costs,
          const std::vector<double>& pace, const RecorderCharges& charges)
      : model_(model),
        host_(host),
        steps_(steps),
        costs_(costs),
        pace_(pace),
        charges_(charges),
        kinds_(model),
        classes_(model),
        device_(device_facts(model)),
        handoffs_(find_handoffs(model, host)),
        work_(model, device_, graph_) {
    graph_.launch_latency_ns = device_.launch_latency_ns;
    graph_.stream_gap_ns = device_.stream_gap_ns;
    graph_.has_sync_records = model.sync_details.size() > 0;
    graph_.has_handoffs = !handoffs_.empty();
  }

  Graph build() {
    collect_moments();
    make_nodes();
    for (NodeId node = 0; node < graph_.nodes.size(); ++node) {
      graph_.nodes[node].first_edge = static_cast<uint32_t>(graph_.edges.size());
      graph_.nodes[node].is_device() ? add_device_edges(node) : add_host_edges(node);
    }
    FL_CHECK(graph_.nodes.size() < kMostNodes, "graph: more nodes than a link can name");
    graph_.links.reserve(graph_.edges.size());
    for (const GraphEdge& edge : graph_.edges) graph_.links.emplace_back(edge);
    charge_recording(model_, host_, {costs_, steps_, pace_, charges_}, device_.last_work_of, graph_);
    find_window(model_, steps_, graph_);
    return std::move(graph_);
  }

 private:
  // A copy call that returns only after its copy is done waits for it. Not where it cannot: an asynchronous one between
  // pinned and device memory was held up by something else (the profiler's buffers), or its copy was short.
  bool waits_for_own_copy(Row call) const {
    const Row work = device_.last_work_of[call];
    if (work == kNoRow || model_.device_slices.kind[work] != DeviceKind::kCopy) return false;
    const CopyKinds copy = model_.copy_kinds(work);
    const bool is_async = model_.text(model_.host_slices.name[call]).find("Async") != std::string_view::npos;
    const bool is_inside_device = copy.source == MemoryKind::kDevice && copy.target == MemoryKind::kDevice;
    const bool is_direct = copy.touches(MemoryKind::kPinned) || is_inside_device;
    if (is_async && is_direct && !copy.touches(MemoryKind::kPageable)) return false;
    return model_.device_slices.end_ns(work) <= model_.host_slices.end_ns(call) + device_.clock_skew_ns;
  }

  void add_call(std::vector<Moment>& moments, Row row) {
    const HostSlices& slices = model_.host_slices;
    const CallKind kind = kinds_.of(row);
    const bool launches = device_.last_work_of[row] != kNoRow;
    const bool waits = is_blocking(kind) || (kind == CallKind::kCopy && waits_for_own_copy(row));
    const bool queue_full = launches && !waits && slices.duration_ns[row] > kSlowLaunchNs &&
                            device_.queue_depth(slices.start_ns[row]) >= kQueueCapacity;
    if (waits || launches) {
      moments.push_back({slices.start_ns[row], row, waits ? Moment::What::kWaitBegin : Moment::What::kLaunch});
    }
    if (waits || queue_full) {
      moments.push_back({slices.end_ns(row), row, waits ? Moment::What::kWaitEnd : Moment::What::kQueueEnd});
    }
  }

  void collect_moments() {
    moments_.resize(host_.chains.size());
    for (size_t chain = 0; chain < host_.chains.size(); ++chain) {
      std::vector<Moment>& moments = moments_[chain];
      for (const LaneId lane : host_.chains[chain].lanes) {
        const auto l = static_cast<size_t>(lane);
        for (Row row = model_.lanes.host_begin[l]; row < model_.lanes.host_end[l]; ++row) {
          if (is_call(model_.host_slices.kind[row])) add_call(moments, row);
        }
      }
      if (chain == 0) {
        for (const FoundStep& step : steps_.steps) {
          moments.push_back({step.start_ns, kNoRow, Moment::What::kBoundary});
          moments.push_back({step.end_ns, kNoRow, Moment::What::kBoundary});
        }
      }
    }
    for (const Handoff& each : handoffs_) {
      moments_[host_.chain_of_lane[static_cast<size_t>(model_.host_slices.lane[each.from])]].push_back(
          {model_.host_slices.start_ns[each.from], each.from, Moment::What::kHandedOver});
    }
    for (std::vector<Moment>& moments : moments_) {
      std::stable_sort(moments.begin(), moments.end(),
                       [](const Moment& a, const Moment& b) { return a.time_ns < b.time_ns; });
    }
  }

  void make_nodes() {
    struct Entry {
      int64_t time_ns;
      uint32_t chain;
      uint32_t index;  // moment of the chain, or device row
    };
    std::vector<Entry> order;
    order.reserve(device_.starts.size() + device_.launch_starts.size() + 64);
    for (uint32_t chain = 0; chain < moments_.size(); ++chain) {
      for (uint32_t i = 0; i < moments_[chain].size(); ++i) order.push_back({moments_[chain][i].time_ns, chain, i});
    }
    for (Row row = 0; row < model_.device_slices.size(); ++row) {
      if (is_device_work(model_.device_slices.kind[row])) {
        order.push_back({model_.device_slices.start_ns[row], kNoRow, row});
      }
    }
    run_sort(order.data(), order.size(), [](const Entry& a, const Entry& b) { return a.time_ns < b.time_ns; });
    graph_.nodes.reserve(order.size());
    graph_.edges.reserve(order.size() * 2);
    what_.reserve(order.size());
    graph_.chain_nodes.resize(moments_.size());
    graph_.chain_of_lane = host_.chain_of_lane;
    graph_.node_of_device.assign(model_.device_slices.size(), kNoNode);
    node_of_call_.assign(model_.host_slices.size(), kNoNode);
    for (const Entry& entry : order) {
      const auto id = static_cast<NodeId>(graph_.nodes.size());
      if (entry.chain == kNoRow) {
        graph_.nodes.push_back({.time_ns = entry.time_ns,
                                .duration_ns = model_.device_slices.duration_ns[entry.index],
                                .row = entry.index,
                                .device_class = classes_.of(entry.index)});
        graph_.node_of_device[entry.index] = id;
        what_.push_back(Moment::What::kBoundary);
        continue;
      }
      const Moment& moment = moments_[entry.chain][entry.index];
      graph_.nodes.push_back({.time_ns = entry.time_ns, .row = moment.row, .chain = entry.chain});
      what_.push_back(moment.what);
      const bool is_begin = moment.what == Moment::What::kLaunch || moment.what == Moment::What::kWaitBegin ||
                            moment.what == Moment::What::kHandedOver;
      if (is_begin) node_of_call_[moment.row] = id;
      graph_.chain_nodes[entry.chain].push_back(id);
    }
    next_in_chain_.assign(moments_.size(), 0);
  }

  int64_t source_time(const GraphEdge& edge) const {
    const GraphNode& source = graph_.nodes[edge.source];
    return source.time_ns + (edge.from_end ? source.duration_ns : 0);
  }

  using Candidate = EdgeCandidate;

  // Adds the candidates as edges; the latest explains the node's time to the ns.
  void add_edges(NodeId node, std::vector<Candidate>& candidates) {
    if (candidates.empty()) return;
    size_t binding = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (candidates[i].expected_ns > candidates[binding].expected_ns) binding = i;
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      GraphEdge& edge = candidates[i].edge;
      const int64_t seen_ns = graph_.nodes[node].time_ns - source_time(edge);
      edge.lag_ns = i == binding ? seen_ns : std::min(edge.lag_ns, seen_ns);
      graph_.edges.push_back(edge);
    }
  }

  NodeId leading_node_before(NodeId node) const {
    if (graph_.chain_nodes.empty()) return kNoNode;
    const std::vector<NodeId>& leading = graph_.chain_nodes[0];
    const auto after = std::lower_bound(leading.begin(), leading.end(), node);
    return after == leading.begin() ? kNoNode : *std::prev(after);
  }

  void add_host_edges(NodeId node) {
    const GraphNode& self = graph_.nodes[node];
    std::vector<Candidate>& candidates = candidates_;
    candidates.clear();
    const std::vector<NodeId>& chain = graph_.chain_nodes[self.chain];
    const size_t place = next_in_chain_[self.chain]++;
    const bool waits = what_[node] == Moment::What::kWaitEnd || what_[node] == Moment::What::kQueueEnd;
    const NodeId done = self.chain == 0 && !host_.leads && self.row == kNoRow ? last_done(self.time_ns) : kNoNode;
    if (done != kNoNode) {
      // Nobody is known to feed the device: a step is over when its work is.
      const int64_t lag = self.time_ns - graph_.nodes[done].time_ns - graph_.nodes[done].duration_ns;
      candidates.push_back(
          {{.source = done, .kind = EdgeKind::kOtherStream, .from_end = true, .lag_ns = lag}, self.time_ns});
    } else if (place > 0) {
      const NodeId before = chain[place - 1];
      const int64_t passed = self.time_ns - graph_.nodes[before].time_ns;
      // What the thread did itself is a node's first edge: cuts of host time look for it there.
      candidates.push_back({{.source = before, .kind = EdgeKind::kHost}, 0});
      const bool is_given = add_given_task(node, candidates) || add_drained_queue(node, before, candidates);
      const bool woken = !is_given && self.chain != 0 && passed > kHandoffGapNs && was_idle(self.chain, before, node);
      const int64_t own = waits      ? std::min(passed, kBlockingCallNs)
                          : woken    ? 0
                          : is_given ? passed - (self.chain == 0 ? drained_ns_ : idle_ns(self.chain, before, node))
                                     : passed;
      candidates[0].edge.lag_ns = own;
      candidates[0].expected_ns = graph_.nodes[before].time_ns + own;
      if (woken) add_handoff(node, candidates);
    } else if (self.chain != 0 && !add_given_task(node, candidates)) {
      add_handoff(node, candidates);
    }
    if (what_[node] == Moment::What::kWaitEnd) add_sync_edges(node, candidates);
    if (what_[node] == Moment::What::kQueueEnd) add_queue_edge(node, candidates);
    add_edges(node, candidates);
  }

  // The work that ended last until then; kNoNode: none did.
  NodeId last_done(int64_t time_ns) const {
    NodeId last = kNoNode;
    int64_t last_ns = INT64_MIN;
    for (const NodeId work : work_.last_on_stream()) {
      if (work == kNoNode) continue;
      const int64_t ended = graph_.nodes[work].time_ns + graph_.nodes[work].duration_ns;
      if (ended > time_ns || ended <= last_ns) continue;
      last = work;
      last_ns = ended;
    }
    return last;
  }

  int64_t idle_ns(uint32_t chain, NodeId from, NodeId to) const {
    const ActivityTimes times = host_.chains[chain].times_in(graph_.nodes[from].time_ns, graph_.nodes[to].time_ns);
    return times[static_cast<size_t>(Activity::kUnrecorded)];
  }
  bool was_idle(uint32_t chain, NodeId from, NodeId to) const {
    return idle_ns(chain, from, to) * 2 > graph_.nodes[to].time_ns - graph_.nodes[from].time_ns;
  }

  // From the moment at which another thread gave over the task that this call is the first of. False: it is none.
  bool add_given_task(NodeId node, std::vector<Candidate>& candidates) {
    const GraphNode& self = graph_.nodes[node];
    if (handoffs_.empty() || self.row == kNoRow || what_[node] == Moment::What::kWaitEnd) return false;
    for (Row task = self.row; task != kNoRow; task = model_.host_slices.parent[task]) {
      const auto found = std::lower_bound(handoffs_.begin(), handoffs_.end(), task,
                                          [](const Handoff& each, Row row) { return each.to < row; });
      if (found == handoffs_.end() || found->to != task) continue;
      const NodeId source = std::exchange(node_of_call_[found->from], kNoNode);  // of several calls the first
      if (source == kNoNode || source >= node) return false;
      last_task_ = {node, model_.host_slices.end_ns(task)};
      const int64_t given_ns = graph_.nodes[source].time_ns;
      const int64_t lag = std::min(kHandoffGapNs, self.time_ns - given_ns);
      candidates.push_back({{.source = source, .kind = EdgeKind::kHandoff, .lag_ns = lag}, given_ns + lag});
      return true;
    }
    return false;
  }

  // A call that waits for the device waits for the tasks first that were given to another thread: it begins right after
  // the last of them was done, in an operator that had begun before. False: it did not.
  bool add_drained_queue(NodeId node, NodeId before, std::vector<Candidate>& candidates) {
    const GraphNode& self = graph_.nodes[node];
    if (last_task_.node == kNoNode || self.chain != 0 || what_[node] != Moment::What::kWaitBegin) return false;
    const int64_t since_ns = self.time_ns - last_task_.end_ns;
    const Row op = model_.host_slices.parent[self.row];
    if (since_ns < 0 || since_ns > kDrainedNs || op == kNoRow) return false;
    drained_ns_ = last_task_.end_ns - std::max(graph_.nodes[before].time_ns, model_.host_slices.start_ns[op]);
    if (drained_ns_ <= 0) return false;
    const int64_t lag = self.time_ns - graph_.nodes[last_task_.node].time_ns;
    candidates.push_back(
        {{.source = last_task_.node, .kind = EdgeKind::kHandoff, .lag_ns = lag}, graph_.nodes[node].time_ns});
    return true;
  }

  void add_handoff(NodeId node, std::vector<Candidate>& candidates) {
    const NodeId source = leading_node_before(node);
    if (source == kNoNode) return;
    const int64_t lag = graph_.nodes[node].time_ns - graph_.nodes[source].time_ns;
    candidates.push_back({{.source = source, .kind = EdgeKind::kHandoff, .lag_ns = lag}, graph_.nodes[node].time_ns});
  }

  // The last work of a stream that this call can have waited for, or kNoNode.
  NodeId awaited_on(size_t lane, const GraphNode& end, int64_t call_start_ns) const {
    NodeId work = work_.last_on_stream()[lane];
    while (work != kNoNode) {
      const int64_t launched = launch_start(model_, graph_.nodes[work].row);
      if (launched == kNoNumber || launched <= call_start_ns) break;
      const Row row = graph_.nodes[work].row;  // launched by another thread meanwhile
      Row before = row;
      while (before > model_.lanes.device_begin[lane] && !is_device_work(model_.device_slices.kind[--before])) {
      }
      work = before == row ? kNoNode : graph_.node_of_device[before];
    }
    const bool ends_later = work != kNoNode && graph_.nodes[work].time_ns + graph_.nodes[work].duration_ns >
                                                   end.time_ns + device_.clock_skew_ns;
    if (ends_later) return kNoNode;
    return work;
  }

  void add_sync_edges(NodeId node, std::vector<Candidate>& candidates) {
    const GraphNode& self = graph_.nodes[node];
    const int64_t call_start = model_.host_slices.start_ns[self.row];
    const CallKind kind = kinds_.of(self.row);
    const auto end_of = [&](NodeId id) { return graph_.nodes[id].time_ns + graph_.nodes[id].duration_ns; };
    const auto add = [&](NodeId work) {
      const int64_t ended = end_of(work);
      candidates.push_back({{.source = work, .kind = EdgeKind::kSync, .from_end = true, .lag_ns = kReturnNs},
                            ended + std::min(kReturnNs, self.time_ns - ended)});
    };
    // Waiting was seen: the work that ended last decided, whatever the call itself usually takes.
    const auto decide = [&](NodeId work) {
      if (end_of(work) <= call_start) return;
      for (Candidate& candidate : candidates) {
        if (candidate.edge.source == work) candidate.expected_ns = self.time_ns;
      }
    };
    if (kind == CallKind::kCopy) {
      const NodeId own = graph_.node_of_device[device_.last_work_of[self.row]];
      if (own >= node) return;
      add(own);
      decide(own);
      return;
    }
    const bool all_streams = kind == CallKind::kDeviceSync || kind == CallKind::kFree;
    NodeId latest = kNoNode;
    for (size_t lane = 0; lane < work_.last_on_stream().size(); ++lane) {
      if (work_.last_on_stream()[lane] == kNoNode) continue;
      const NodeId work = awaited_on(lane, self, call_start);
      if (work == kNoNode) continue;
      if (all_streams) add(work);
      if (latest == kNoNode || end_of(work) > end_of(latest)) latest = work;
    }
    if (latest == kNoNode) return;
    if (!all_streams) add(latest);
    decide(latest);
  }

  void add_queue_edge(NodeId node, std::vector<Candidate>& candidates) {
    NodeId latest = kNoNode;
    for (const NodeId work : work_.last_on_stream()) {
      if (work != kNoNode && (latest == kNoNode || work > latest)) latest = work;
    }
    if (latest == kNoNode || graph_.nodes[latest].time_ns <= model_.host_slices.start_ns[graph_.nodes[node].row])
      return;
    candidates.push_back(
        {{.source = latest, .kind = EdgeKind::kQueue, .lag_ns = kReturnNs}, graph_.nodes[node].time_ns});
  }

  void add_device_edges(NodeId node) {
    const GraphNode& self = graph_.nodes[node];
    std::vector<Candidate>& candidates = candidates_;
    candidates.clear();
    const Row launch = model_.device_slices.launch[self.row];
    const NodeId call = launch == kNoRow ? kNoNode : node_of_call_[launch];
    if (call != kNoNode && call < node) {
      const int64_t lag = graph_.launch_latency_ns;
      candidates.push_back(
          {{.source = call, .kind = EdgeKind::kLaunch, .lag_ns = lag}, graph_.nodes[call].time_ns + lag});
    }
    work_.add_edges(node, candidates);
    if (candidates.empty()) add_handoff(node, candidates);
    add_edges(node, candidates);
    work_.passed(node);
  }

  const Model& model_;
  const HostTime& host_;
  const StepList& steps_;
  const SliceCosts& costs_;
  const std::vector<double>& pace_;
  const RecorderCharges& charges_;
  CallKinds kinds_;
  DeviceClasses classes_;
  DeviceFacts device_;
  Graph graph_;
  std::vector<Handoff> handoffs_;  // by the task's slice
  WorkEdges work_;
  std::vector<std::vector<Moment>> moments_;  // by chain
  std::vector<Moment::What> what_;            // by node
  std::vector<NodeId> node_of_call_;
  std::vector<size_t> next_in_chain_;
  struct Task {
    NodeId node = kNoNode;  // its first call
    int64_t end_ns = 0;
  };
  Task last_task_;          // that another thread was given
  int64_t drained_ns_ = 0;  // how long the call that was looked at last waited for it
  std::vector<Candidate> candidates_;
};

}  // namespace

std::string_view name_of(EdgeKind kind) {
  static constexpr std::array<std::string_view, kEdgeKindCount> kNames = {"host", "launch", "stream",  "other_stream",
                                                                          "sync", "queue",  "handoff", "data"};
  return kNames[static_cast<size_t>(kind)];
}

Graph build_graph(const Model& model, const HostTime& host, const StepList& steps, const SliceCosts& costs,
                  const std::vector<double>& pace, const RecorderCharges& charges) {
  Graph graph = Builder(model, host, steps, costs, pace, charges).build();
  for (NodeId node = 0; node < graph.nodes.size(); ++node) {
    int64_t latest = INT64_MIN;
    for (size_t e = graph.edges_begin(node); e < graph.edges_end(node); ++e) {
      const GraphEdge& edge = graph.edges[e];
      const GraphNode& source = graph.nodes[edge.source];
      latest = std::max(latest, source.time_ns + (edge.from_end ? source.duration_ns : 0) + edge.lag_ns);
    }
    FL_CHECK(latest == INT64_MIN || latest == graph.nodes[node].time_ns,
             "graph: replaying it unchanged must give the recorded times");
  }
  return graph;
}

}  // namespace firelane::analyze
