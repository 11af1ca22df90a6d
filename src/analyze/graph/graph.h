// The dependency graph of a trace: what each launch, kernel and wait had to wait for, and how long
// everything would have taken had a cost been different.
//
// Nodes are moments of host chains (launches, begin and end of blocking calls, step boundaries)
// and pieces of device work. A node's time is the latest of its edges: source + lag. Edges:
//   host          the moment before on the same chain; the lag is what the host did in between
//   launch        from the launching call's start to the work's start
//   stream        from the end of the work before on the stream
//   other_stream  from work on another stream: by cuda_sync records, else inferred when work starts right
//                 after other work ended although it was launched long before
//   sync          from the end of device work to the return of the call that waits for it
//   queue         from the start of device work to the return of a launch that found the queue full
//   data          from work whose data is needed, on any stream: with an execution trace (graph_data.h)
//   handoff       from the leading chain to a chain of another thread that begins to work; where the trace has arrows
//                 between them (Ascend's task queue), from the moment at which each task was given over
// The lag of the edge that was binding takes up what the model cannot explain, so replaying
// the graph unchanged gives the recorded times exactly (checked while building).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/device/device_class.h"
#include "analyze/graph/whatif.h"
#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "model/model.h"

namespace firelane::analyze {

enum class EdgeKind : uint8_t { kHost, kLaunch, kStream, kOtherStream, kSync, kQueue, kHandoff, kData };
inline constexpr size_t kEdgeKindCount = 8;
std::string_view name_of(EdgeKind kind);

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

struct GraphEdge {
  NodeId source = kNoNode;
  EdgeKind kind = EdgeKind::kHost;
  bool from_end = false;  // from the end of device work, not its start
  // Stream, and recorded waits for another: what both read and write is known, and neither needs the other.
  bool is_order_only = false;
  int64_t lag_ns = 0;
  int64_t recorder_ns = 0;  // of the lag: what recording itself is estimated to have added
  // Launch: of the lag, what the call took beyond the usual before the work was queued. Host: what the thread waited
  // for a core.
  int64_t host_ns = 0;
};

// What a replay needs of an edge at every visit: 4 bytes instead of 32.
class EdgeLink {
 public:
  EdgeLink() = default;
  explicit EdgeLink(const GraphEdge& edge)
      : bits_(edge.source << 2 | (edge.kind == EdgeKind::kSync ? 2U : 0U) | (edge.from_end ? 1U : 0U)) {}

  NodeId source() const { return bits_ >> 2; }
  bool is_sync() const { return (bits_ & 2) != 0; }
  bool from_end() const { return (bits_ & 1) != 0; }

 private:
  uint32_t bits_ = 0;
};
inline constexpr size_t kMostNodes = size_t{1} << 30;  // that a link can name

struct GraphNode {
  int64_t time_ns = 0;      // recorded: of the moment, or of the start of the device work
  int64_t duration_ns = 0;  // device work; 0 for host moments
  Row row = kNoRow;         // device slice, or host slice of the call; kNoRow: a boundary
  uint32_t chain = kNoRow;  // host moments: chain of HostTime; kNoRow for device work
  uint32_t first_edge = 0;  // edges[first_edge .. next node's first_edge)
  DeviceClass device_class = DeviceClass::kCompute;
  bool is_device() const { return chain == kNoRow; }
};

// What recording one event is estimated to have cost a chain, or what it waited for a core, and when.
struct RecorderCharge {
  int64_t time_ns = 0;
  double ns = 0;
  bool is_wait = false;
};

using RecorderCharges = std::vector<std::vector<RecorderCharge>>;  // by chain, in order of time

struct Graph {
  std::vector<GraphNode> nodes;  // in order of recorded time; a source always stands before its target
  std::vector<GraphEdge> edges;
  std::vector<EdgeLink> links;                   // by edge
  std::vector<NodeId> node_of_device;            // by row of device_slices; kNoNode: not device work
  std::vector<std::vector<NodeId>> chain_nodes;  // by chain, in order of time
  std::vector<uint32_t> chain_of_lane;           // as HostTime has it
  RecorderCharges charges;
  NodeId window_start = kNoNode;  // moments of the leading chain
  NodeId window_end = kNoNode;
  std::vector<std::pair<NodeId, NodeId>> step_nodes;  // begin and end of each step of the StepList
  std::vector<NodeId> tail;        // per stream, the last work launched inside of the window: it may end after it
  std::vector<NodeId> first_work;  // the first such work of the same streams
  // Work that kept the device busy when the window began: the window is measured from its end on, as it
  // would otherwise pay for the steps before. `lag_ns` is from the node's end or, for work before the
  // trace, back from the start of the first recorded piece.
  std::vector<GraphEdge> head;
  int64_t launch_latency_ns = 0;    // usual: call start to start on an idle device
  int64_t stream_gap_ns = 0;        // usual: between two queued pieces of work
  int64_t inferred_waits = 0;       // other_stream edges without a record that says so
  bool has_data = false;            // an execution trace says which work needs whose data
  std::vector<NodeId> window_work;  // with data: all work launched inside of the window
  bool has_sync_records = false;
  bool has_handoffs = false;  // the trace says which thread gave which task to another

  size_t edges_begin(NodeId node) const { return nodes[node].first_edge; }
  size_t edges_end(NodeId node) const { return node + 1 < nodes.size() ? nodes[node + 1].first_edge : edges.size(); }
};

// What one slice of each kind costs the program while it is recorded, in ns.
struct SliceCosts {
  double op = 0;
  double line = 0;  // of an op or annotation whose line was noted, in addition
  double python = 0;
  double annotation = 0;
  double launch = 0;  // runtime and driver calls that queue work
  double call = 0;    // all others
  double memory = 0;  // an allocation or release
};

// `pace`: for each step, by what the host was slower in it than the costs say; empty: by nothing. `charges`: in
// addition to what slices cost.
Graph build_graph(const Model& model, const HostTime& host, const StepList& steps, const SliceCosts& costs,
                  const std::vector<double>& pace = {}, const RecorderCharges& charges = {});

struct Replay {
  std::vector<int64_t> time_ns;      // by node; of the start for device work
  std::vector<int64_t> duration_ns;  // by node
  std::vector<uint32_t> binding;     // by node: the edge that decided; kNoRow for roots
  std::vector<int64_t> lag_ns;       // by edge, as changed
  int64_t start_ns = 0;              // of the window, after the work before it
  int64_t end_ns = 0;                // when host and device were done with it
  NodeId last = kNoNode;             // the node that ends the window
  int64_t total_ns() const { return end_ns - start_ns; }
};

struct ReplayOptions {
  // Share of the estimated cost of recording to subtract: 0 = as recorded. With any of it, the wait for a core goes as
  // well.
  double recording_removed = 1;
  // As if the window were one of many that follow each other: the device begins as far behind the host as it ends. A
  // few steps that a recorder made host-bound else pay for a queue that fills up and runs empty once.
  bool repeated = false;
};

// The spans of the judged steps on the clock of `played`: contiguous, from its start to its end. A step ends
// when the host has passed its boundary and the device has done what was launched before it.
std::vector<Interval> step_spans(const Model& model, const Graph& graph, const Replay& played, const StepList& steps);

Replay replay(const Graph& graph, const WhatIf& change = {}, const ReplayOptions& options = {});

// A change as replays of one graph need it: made once, asked with several options.
class PreparedChange {
 public:
  PreparedChange(const Graph& graph, const WhatIf& change);

  // Replaying gives what it gives without the change.
  bool is_none() const { return is_none_; }

 private:
  friend class Player;

  // What cuts take out of an edge's stretch of host time.
  struct Cut {
    uint32_t edge = 0;
    double part = 0;      // of the stretch, 0..1
    double recorder = 0;  // ns of recording's cost that lie in this part
    double waited = 0;    // ns without a core that do
  };

  void cut_edges(const Graph& graph, std::vector<HostCut> cuts);
  void change_durations(const Graph& graph, const WhatIf& change);

  double keep_host_ = 1;
  double keep_latency_ = 1;
  bool data_order_only_ = false;
  std::vector<Cut> cuts_;              // by edge
  std::vector<Row> waits_;             // sorted
  std::vector<int64_t> durations_ns_;  // by node; empty: as recorded
  bool is_none_ = true;
};

// replay(...).total_ns() at a fraction of its cost: what a change saves needs no more. `unchanged`: a replay of the
// graph with the same options and no change, whose lags need not be computed again.
int64_t replay_total_ns(const Graph& graph, const PreparedChange& change, const ReplayOptions& options,
                        const Replay* unchanged = nullptr);
int64_t replay_total_ns(const Graph& graph, const WhatIf& change, const ReplayOptions& options,
                        const Replay* unchanged = nullptr);

// How long the leading chain takes for the window, which may be less: work that it launched ends later.
int64_t replay_host_ns(const Graph& graph, const ReplayOptions& options);

}  // namespace firelane::analyze
