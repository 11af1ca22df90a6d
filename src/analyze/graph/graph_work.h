// What device work had to wait for on the device: the work before on its stream, work of other streams, work whose data
// it needs. Private to analyze/graph*.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/graph/graph.h"
#include "analyze/graph/graph_data.h"
#include "analyze/graph/graph_device.h"

namespace firelane::analyze {

// One reason for a node's time.
struct EdgeCandidate {
  GraphEdge edge;       // lag: what it usually is, at most what was seen
  int64_t expected_ns;  // when the target could have started for this reason alone
};

class WorkEdges {
 public:
  // All three have to stay; sets graph.has_data.
  WorkEdges(const Model& model, const DeviceFacts& device, Graph& graph);

  // REQUIRES: called once for each piece of device work, in the order of the graph's nodes, passed() after each.
  void add_edges(NodeId node, std::vector<EdgeCandidate>& candidates);
  void passed(NodeId node);

  // By lane, the last that was passed; kNoNode: none.
  const std::vector<NodeId>& last_on_stream() const { return last_on_stream_; }

 private:
  // A recorded wait for work of another lane that data does not need.
  struct GivenUp {
    size_t lane;
    NodeId until;  // work of that lane
    NodeId by;     // who waits
  };
  using Candidates = std::vector<EdgeCandidate>;

  size_t lane_of(NodeId node) const;
  int64_t end_of(NodeId node) const { return graph_.nodes[node].time_ns + graph_.nodes[node].duration_ns; }
  void add_data_edges(NodeId node, Candidates& candidates) const;
  void add_stream_edge(NodeId node, NodeId before, bool is_order_only, Candidates& candidates) const;
  void add_stream_edges(NodeId node, size_t lane, Candidates& candidates) const;
  bool add_other_stream_edge(NodeId node, NodeId source, bool is_order_only, Candidates& candidates) const;
  bool add_wait(NodeId node, size_t lane, NodeId source, Candidates& candidates);
  bool add_recorded_waits(NodeId node, size_t lane, Candidates& candidates);
  void keep_all_until(NodeId node, const GivenUp& wait, Candidates& candidates) const;
  void infer_other_stream_edge(NodeId node, size_t lane, Candidates& candidates);
  void add_running_edge(NodeId node, size_t lane, Candidates& candidates);

  const Model& model_;
  const DeviceFacts& device_;
  Graph& graph_;
  DataOrder data_;
  std::vector<NodeId> last_on_stream_;                // by lane
  std::vector<NodeId> unknown_on_stream_;             // by lane, with data: the last work of which nothing is known
  std::vector<std::vector<NodeId>> known_on_stream_;  // by lane, with data: the work behind it
  std::vector<std::vector<GivenUp>> given_up_;        // by lane, with data: waits of that work
};

}  // namespace firelane::analyze
