#include "analyze/graph/graph_work.h"

#include <algorithm>

namespace firelane::analyze {

namespace {

constexpr int64_t kUnexplainedNs = 10'000;    // from here on a late start needs another reason
constexpr int64_t kInferWithinNs = 15'000;    // such a reason ended this shortly before
constexpr int64_t kSurelyWaitedNs = 200'000;  // no latency is this long

}  // namespace

WorkEdges::WorkEdges(const Model& model, const DeviceFacts& device, Graph& graph)
    : model_(model),
      device_(device),
      graph_(graph),
      data_(data_order(model)),
      last_on_stream_(model.lanes.size(), kNoNode),
      unknown_on_stream_(model.lanes.size(), kNoNode),
      known_on_stream_(model.lanes.size()),
      given_up_(model.lanes.size()) {
  graph_.has_data = !data_.empty();
}

size_t WorkEdges::lane_of(NodeId node) const {
  return static_cast<size_t>(model_.device_slices.lane[graph_.nodes[node].row]);
}

void WorkEdges::add_edges(NodeId node, Candidates& candidates) {
  const size_t lane = lane_of(node);
  add_data_edges(node, candidates);
  if (last_on_stream_[lane] != kNoNode) add_stream_edges(node, lane, candidates);
  const bool is_recorded = add_recorded_waits(node, lane, candidates);
  if (!is_recorded) infer_other_stream_edge(node, lane, candidates);
  // What work before it on the stream may give up, work that nothing is known of may not.
  if (!graph_.has_data || data_.is_known(graph_.nodes[node].row)) return;
  for (const GivenUp& wait : given_up_[lane]) keep_all_until(node, wait, candidates);
}

void WorkEdges::passed(NodeId node) {
  const size_t lane = lane_of(node);
  last_on_stream_[lane] = node;
  if (!graph_.has_data) return;
  if (data_.is_known(graph_.nodes[node].row)) {
    known_on_stream_[lane].push_back(node);
  } else {
    unknown_on_stream_[lane] = node;
    known_on_stream_[lane].clear();
    given_up_[lane].clear();
  }
}

// From work whose data this needs.
void WorkEdges::add_data_edges(NodeId node, Candidates& candidates) const {
  const GraphNode& self = graph_.nodes[node];
  for (const auto& [work, needed] : data_.waits_of(self.row)) {
    const NodeId source = graph_.node_of_device[needed];
    if (source >= node) continue;
    const int64_t ended = end_of(source);
    if (ended > self.time_ns) continue;  // they overlapped: it cannot have waited
    const int64_t lag = std::min(graph_.stream_gap_ns, self.time_ns - ended);
    candidates.push_back({{.source = source, .kind = EdgeKind::kData, .from_end = true, .lag_ns = lag}, ended + lag});
  }
}

void WorkEdges::add_stream_edge(NodeId node, NodeId before, bool is_order_only, Candidates& candidates) const {
  const GraphNode& self = graph_.nodes[node];
  const int64_t ended = end_of(before);
  GraphEdge edge{.source = before, .kind = EdgeKind::kStream, .is_order_only = is_order_only};
  if (ended <= self.time_ns) {
    edge.from_end = true;
    edge.lag_ns = std::min(graph_.stream_gap_ns, self.time_ns - ended);
    candidates.push_back({edge, ended + edge.lag_ns});
  } else {  // they overlap: only the order of their starts is known
    candidates.push_back({edge, graph_.nodes[before].time_ns});
  }
}

// The work before on the stream. With data this order may be given up, and what must not be stands for itself: work
// of the same call, and all that is before or behind work of which nothing is known.
void WorkEdges::add_stream_edges(NodeId node, size_t lane, Candidates& candidates) const {
  const Row row = graph_.nodes[node].row;
  const NodeId before = last_on_stream_[lane];
  if (!graph_.has_data) return add_stream_edge(node, before, false, candidates);
  const bool is_known = data_.is_known(row);
  std::vector<NodeId> kept;
  if (!is_known) kept = known_on_stream_[lane];
  if (unknown_on_stream_[lane] != kNoNode) kept.push_back(unknown_on_stream_[lane]);
  for (const auto& [work, earlier] : data_.inside_of(row)) {
    const NodeId source = graph_.node_of_device[earlier];
    if (source < node) kept.push_back(source);
  }
  const bool is_kept = std::find(kept.begin(), kept.end(), before) != kept.end();
  add_stream_edge(node, before, !is_kept, candidates);
  for (const NodeId source : kept) {
    if (source != before) add_stream_edge(node, source, false, candidates);
  }
}

// False where they overlapped: it cannot have waited.
bool WorkEdges::add_other_stream_edge(NodeId node, NodeId source, bool is_order_only, Candidates& candidates) const {
  const GraphNode& self = graph_.nodes[node];
  const int64_t ended = end_of(source);
  if (source >= node || ended > self.time_ns) return false;
  const int64_t lag = std::min(graph_.stream_gap_ns, self.time_ns - ended);
  const GraphEdge edge{.source = source,
                       .kind = EdgeKind::kOtherStream,
                       .from_end = true,
                       .is_order_only = is_order_only,
                       .lag_ns = lag};
  candidates.push_back({edge, ended + lag});
  return true;
}

// A wait for work of another stream. Data may need less than was waited for: such a wait may be given up like the order
// on a stream. False: there was none.
bool WorkEdges::add_wait(NodeId node, size_t lane, NodeId source, Candidates& candidates) {
  if (source >= node) return false;
  const bool is_known = data_.is_known(graph_.nodes[node].row);
  const size_t other = lane_of(source);
  const NodeId unknown = unknown_on_stream_[other];
  // Of unknown work that was there before, only the last is remembered.
  const bool may_give_up =
      is_known && data_.is_known(graph_.nodes[source].row) && (unknown == kNoNode || unknown < source);
  if (!add_other_stream_edge(node, source, may_give_up, candidates)) return false;
  if (!graph_.has_data) return true;
  if (!is_known) {
    keep_all_until(node, {other, source, 0}, candidates);
  } else if (may_give_up) {
    given_up_[lane].push_back({other, source, node});
    if (unknown != kNoNode) add_other_stream_edge(node, unknown, false, candidates);
  }
  return true;
}

// Waits for another stream that the trace has records of. Returns whether there is one.
bool WorkEdges::add_recorded_waits(NodeId node, size_t lane, Candidates& candidates) {
  const Row row = graph_.nodes[node].row;
  bool found = false;
  for (auto wait =
           std::lower_bound(device_.stream_waits.begin(), device_.stream_waits.end(), std::pair<Row, Row>{row, 0});
       wait != device_.stream_waits.end() && wait->first == row; ++wait) {
    found = add_wait(node, lane, graph_.node_of_device[wait->second], candidates) || found;
  }
  return found;
}

// Work that nothing is known of stays behind all that it was behind: also what is known only by waits that work
// before it may give up.
void WorkEdges::keep_all_until(NodeId node, const GivenUp& wait, Candidates& candidates) const {
  std::vector<NodeId> until(given_up_.size(), kNoNode);  // by lane
  std::vector<GivenUp> open = {wait};
  while (!open.empty()) {
    const auto [lane, last, by] = open.back();
    open.pop_back();
    if (until[lane] != kNoNode && until[lane] >= last) continue;
    until[lane] = last;
    for (const NodeId source : known_on_stream_[lane]) {
      if (source <= last) add_other_stream_edge(node, source, false, candidates);
    }
    for (const GivenUp& more : given_up_[lane]) {
      if (more.by <= last) open.push_back(more);
    }
  }
}

// Where no record says for what it waits, and neither its launch, its stream nor its data explain when it began.
void WorkEdges::infer_other_stream_edge(NodeId node, size_t lane, Candidates& candidates) {
  const GraphNode& self = graph_.nodes[node];
  int64_t explained = INT64_MIN;
  for (const EdgeCandidate& candidate : candidates) explained = std::max(explained, candidate.expected_ns);
  if (explained == INT64_MIN || self.time_ns - explained < kUnexplainedNs) return;
  NodeId cause = kNoNode;
  int64_t cause_end = self.time_ns - kInferWithinNs;
  for (size_t other = 0; other < last_on_stream_.size(); ++other) {
    const NodeId work = last_on_stream_[other];
    if (other == lane || work == kNoNode) continue;
    const int64_t ended = end_of(work);
    if (ended > cause_end && ended <= self.time_ns) {
      cause = work;
      cause_end = ended;
    }
  }
  if (cause == kNoNode && self.time_ns - explained >= kSurelyWaitedNs) {
    add_running_edge(node, lane, candidates);
  } else if (cause != kNoNode && add_wait(node, lane, cause, candidates)) {
    ++graph_.inferred_waits;
  }
}

// Queued long ago, and started while another stream worked: it waited for room, or for that stream, until then.
void WorkEdges::add_running_edge(NodeId node, size_t lane, Candidates& candidates) {
  const GraphNode& self = graph_.nodes[node];
  NodeId running = kNoNode;
  for (size_t other = 0; other < last_on_stream_.size(); ++other) {
    const NodeId work = last_on_stream_[other];
    if (other == lane || work == kNoNode) continue;
    const int64_t ended = end_of(work);
    if (ended > self.time_ns && (running == kNoNode || work > running)) running = work;
  }
  if (running == kNoNode) return;
  const int64_t lag = self.time_ns - graph_.nodes[running].time_ns;
  candidates.push_back({{.source = running, .kind = EdgeKind::kOtherStream, .lag_ns = lag}, self.time_ns});
  ++graph_.inferred_waits;
}

}  // namespace firelane::analyze
