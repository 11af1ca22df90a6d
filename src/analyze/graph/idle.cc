#include "analyze/graph/idle.h"

#include <algorithm>
#include <numeric>

#include "analyze/device/device_work.h"
#include "analyze/host/host_calls.h"
#include "base/check.h"

namespace firelane::analyze {

namespace {

// Latency or a gap between queued work beyond this has a reason that the trace does not show.
constexpr int64_t kLongestGapNs = 100'000;

class Attribution {
 public:
  Attribution(const Model& model, const HostTime& host, const Graph& graph, const Replay& recorded, IdleTable& out)
      : model_(model), host_(host), graph_(graph), recorded_(recorded), out_(out) {}

  void run(const IntervalSet& busy) {
    int64_t now = out_.window.start_ns;
    const std::vector<Interval>& works = busy.intervals();
    auto work = std::partition_point(works.begin(), works.end(),
                                     [&](const Interval& interval) { return interval.end_ns <= now; });
    next_node_ = 0;
    for (; work != works.end() && work->start_ns < out_.window.end_ns; ++work) {
      if (work->start_ns > now) explain(now, work->start_ns);
      now = std::max(now, work->end_ns);
    }
    if (now < out_.window.end_ns) {
      host_late(0, now, out_.window.end_ns);
      close_gap(now, out_.window.end_ns, kNoRow);
    }
  }

 private:
  NodeId node_starting_at(int64_t time_ns) {
    while (next_node_ < graph_.nodes.size() &&
           (graph_.nodes[next_node_].time_ns < time_ns || !graph_.nodes[next_node_].is_device())) {
      ++next_node_;
    }
    return next_node_;
  }

  void explain(int64_t start_ns, int64_t end_ns) {
    const NodeId node = node_starting_at(end_ns);
    const uint32_t e = node < graph_.nodes.size() ? recorded_.binding[node] : kNoRow;
    if (e == kNoRow) {
      add(start_ns, end_ns, IdleCause::kUnknown, kNoRow);
    } else {
      by_edge(node, graph_.edges[e], start_ns, end_ns);
    }
    close_gap(start_ns, end_ns, node < graph_.nodes.size() ? graph_.nodes[node].row : kNoRow);
  }

  bool is_from_other_stream(NodeId node, const GraphEdge& edge) const {
    if (edge.kind != EdgeKind::kData) return edge.kind == EdgeKind::kOtherStream;
    const Cells<LaneId>& lanes = model_.device_slices.lane;
    return lanes[graph_.nodes[node].row] != lanes[graph_.nodes[edge.source].row];
  }

  // The call that queued the work, if it compiles it (Ascend) and was still doing so: several kernels follow each other
  // as it has them ready.
  NodeId compiling_call(NodeId node, int64_t end_ns) const {
    const Row launch = model_.device_slices.launch[graph_.nodes[node].row];
    if (launch == kNoRow || model_.host_slices.end_ns(launch) < end_ns) return kNoNode;
    if (call_kind(model_.text(model_.host_slices.name[launch])) != CallKind::kLoading) return kNoNode;
    const size_t e = graph_.edges_begin(node);  // where it has one, the edge of the launch is the first
    const bool is_edge = e < graph_.edges_end(node) && graph_.edges[e].kind == EdgeKind::kLaunch;
    return is_edge ? graph_.edges[e].source : kNoNode;
  }

  void by_edge(NodeId node, const GraphEdge& edge, int64_t start_ns, int64_t end_ns) {
    const bool is_long = end_ns - start_ns > kLongestGapNs;
    if (is_from_other_stream(node, edge)) return add(start_ns, end_ns, IdleCause::kOtherStream, kNoRow);
    if (const NodeId call = compiling_call(node, end_ns); call != kNoNode) {
      return host_late(graph_.nodes[call].chain, start_ns, end_ns);
    }
    switch (edge.kind) {
      case EdgeKind::kLaunch: {
        const GraphNode& call = graph_.nodes[edge.source];
        int64_t launched = std::clamp(call.time_ns, start_ns, end_ns);
        // A call that takes long before its work is queued: it compiles, loads or allocates meanwhile.
        if (end_ns - launched > kLongestGapNs)
          launched = std::clamp(model_.host_slices.end_ns(call.row), launched, end_ns);
        host_late(call.chain, start_ns, launched);
        add(launched, end_ns, end_ns - launched > kLongestGapNs ? IdleCause::kUnknown : IdleCause::kLaunchLatency,
            call.row);
        return;
      }
      case EdgeKind::kData:
      case EdgeKind::kStream:
        add(start_ns, end_ns, is_long ? IdleCause::kUnknown : IdleCause::kBetweenWork, kNoRow);
        return;
      default: add(start_ns, end_ns, IdleCause::kUnknown, kNoRow);
    }
  }

  void host_late(uint32_t chain, int64_t start_ns, int64_t end_ns) {
    if (end_ns <= start_ns) return;
    if (chain >= host_.chains.size()) return add(start_ns, end_ns, IdleCause::kUnknown, kNoRow);
    const std::vector<HostSegment>& segments = host_.chains[chain].segments;
    size_t& at = cursor(chain);
    while (at < segments.size() && segments[at].end_ns <= start_ns) ++at;
    int64_t now = start_ns;
    for (size_t i = at; i < segments.size() && now < end_ns; ++i) {
      const int64_t until = std::min(end_ns, segments[i].end_ns);
      // A thread that works off a queue and has nothing to do waits for the one that fills it.
      const bool waits = graph_.has_handoffs && chain != 0 && segments[i].slice == kNoRow;
      waits ? host_late(0, now, until) : add(now, until, cause_of(segments[i].activity), segments[i].slice);
      now = until;
    }
    add(now, end_ns, IdleCause::kUnknown, kNoRow);
  }

  size_t& cursor(uint32_t chain) {
    if (cursors_.size() <= chain) cursors_.resize(chain + 1, 0);
    return cursors_[chain];
  }

  void add(int64_t start_ns, int64_t end_ns, IdleCause cause, Row slice) {
    if (end_ns <= start_ns) return;
    out_.by_cause[static_cast<size_t>(cause)] += end_ns - start_ns;
    gap_times_[static_cast<size_t>(cause)] += end_ns - start_ns;
    if (end_ns - start_ns > longest_ns_) {
      longest_ns_ = end_ns - start_ns;
      longest_slice_ = slice;
    }
    std::vector<IdleSegment>& segments = out_.segments;
    const bool continues = !segments.empty() && segments.back().end_ns == start_ns && segments.back().cause == cause;
    if (continues && segments.back().slice == slice) {
      segments.back().end_ns = end_ns;
    } else {
      segments.push_back({start_ns, end_ns, cause, slice});
    }
  }

  void close_gap(int64_t start_ns, int64_t end_ns, Row next) {
    const auto main = std::max_element(gap_times_.begin(), gap_times_.end());
    out_.gaps.push_back(
        {start_ns, end_ns, static_cast<IdleCause>(main - gap_times_.begin()), *main, longest_slice_, next});
    out_.idle_ns += end_ns - start_ns;
    gap_times_ = {};
    longest_ns_ = 0;
    longest_slice_ = kNoRow;
  }

  const Model& model_;
  const HostTime& host_;
  const Graph& graph_;
  const Replay& recorded_;
  IdleTable& out_;
  NodeId next_node_ = 0;
  std::vector<size_t> cursors_;
  IdleTimes gap_times_{};
  int64_t longest_ns_ = 0;
  Row longest_slice_ = kNoRow;
};

}  // namespace

std::string_view name_of(IdleCause cause) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"host_input", "host_python", "host_op", "host_launch", "host_call", "host_sync", "host_allocation", "host_gc",
       "host_loading", "host_recorder", "host_collective", "host_no_core", "host_unrecorded", "launch_latency",
       "between_work", "other_stream", "unknown"});
  static_assert(kNames.size() == kIdleCauseCount);
  return kNames[static_cast<size_t>(cause)];
}

std::string_view words_for(IdleCause cause, bool is_light) {
  if (is_light && cause == cause_of(Activity::kUnrecorded)) {
    return "the host was in Python or in operators, which light steps do not distinguish";
  }
  if (is_light && cause == cause_of(Activity::kOp)) return "the host was inside operators, between their launches";
  static constexpr std::array<std::string_view, kIdleCauseCount> kWords = {
      "waiting for the next batch (DataLoader)",
      "the host was running Python",
      "the host was inside operators",
      "the host was launching other work",
      "the host was in other CUDA calls",
      "the host was waiting for the device",
      "the host was allocating device memory",
      "the host was in Python's garbage collector",
      "the host was loading kernels",
      "the profiler itself",
      "waiting for other ranks (a collective was under way)",
      "waiting for a core (other programs used them)",
      "the host was between operators (Python or other code that was not recorded)",
      "launched, not yet started",
      "between queued kernels",
      "waiting for another stream",
      "unknown from this trace"};
  return kWords[static_cast<size_t>(cause)];
}

IdleTimes IdleTable::times_in(int64_t start_ns, int64_t end_ns) const {
  IdleTimes times{};
  auto segment = std::partition_point(segments.begin(), segments.end(),
                                      [&](const IdleSegment& each) { return each.end_ns <= start_ns; });
  for (; segment != segments.end() && segment->start_ns < end_ns; ++segment) {
    times[static_cast<size_t>(segment->cause)] +=
        std::min(end_ns, segment->end_ns) - std::max(start_ns, segment->start_ns);
  }
  return times;
}

IdleTable idle_table(const Model& model, const HostTime& host, const Graph& graph, const Replay& recorded) {
  IdleTable table{.window = {recorded.start_ns, recorded.end_ns}};
  const IntervalSet busy = device_busy(model);
  table.busy_ns = busy.covered_ns(table.window.start_ns, table.window.end_ns);
  if (busy.total_ns() == 0) return table;  // no device: nothing can be said of its idle time
  // An idle device's segments are the host's; growing step by step would hold them twice.
  if (!host.chains.empty()) table.segments.reserve(host.chains[0].segments.size());
  Attribution(model, host, graph, recorded, table).run(busy);
  FL_CHECK(table.busy_ns + table.idle_ns == table.window.end_ns - table.window.start_ns,
           "idle_table: busy and idle time must cover the window exactly");
  FL_CHECK(std::accumulate(table.by_cause.begin(), table.by_cause.end(), int64_t{0}) == table.idle_ns,
           "idle_table: causes must add up to the idle time");
  return table;
}

}  // namespace firelane::analyze
