#include "analyze/graph/critical_path.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace firelane::analyze {

namespace {

// Latency beyond this is a wait for something that the trace does not show.
constexpr int64_t kLongestPathLatencyNs = 200'000;

PathClass class_of(DeviceClass device_class) {
  return device_class == DeviceClass::kCompute         ? PathClass::kCompute
         : device_class == DeviceClass::kCommunication ? PathClass::kCommunication
                                                       : PathClass::kCopy;
}

class Walk {
 public:
  Walk(const HostTime& host, const Graph& graph, const Replay& played, CriticalPath& out)
      : host_(host), graph_(graph), played_(played), out_(out), segment_of_(host.chains.size(), 0) {}

  // Backwards from the end of the window; pieces come out latest first.
  void run() {
    NodeId node = played_.last;
    int64_t now = played_.end_ns;
    if (graph_.nodes[node].is_device()) add_work(node, now);
    now = std::min(now, played_.time_ns[node]);
    while (now > played_.start_ns) {
      const uint32_t e = played_.binding[node];
      if (e == kNoRow) break;
      const GraphEdge& edge = graph_.edges[e];
      reached_by_ = static_cast<uint8_t>(edge.kind);
      const int64_t from = played_.time_ns[edge.source] + (edge.from_end ? played_.duration_ns[edge.source] : 0);
      if (edge.kind == EdgeKind::kHost) {
        add_host(graph_.nodes[node].chain, edge.source, node, from, now);
      } else if (edge.kind == EdgeKind::kHandoff && now - from > kLongestPathLatencyNs) {
        // Another thread has work for the device only when the leading one gave it some: until then it is that one's.
        add_host(graph_.nodes[edge.source].chain, edge.source, node, from, now);
      } else if (is_beside(edge)) {
        const GraphNode& running = graph_.nodes[edge.source];
        add(from, now, class_of(running.device_class), {running.time_ns, running.time_ns + running.duration_ns},
            running.row);
      } else {
        const Interval recorded{graph_.nodes[edge.source].time_ns, graph_.nodes[node].time_ns};
        // A call that takes long before its work is queued is the host's: it compiles, loads or allocates.
        const bool is_slow_call = edge.kind == EdgeKind::kLaunch && now - from > kLongestPathLatencyNs;
        const int64_t queued = is_slow_call ? std::min(now, from + edge.host_ns) : from;
        const bool is_long = now - queued > kLongestPathLatencyNs;
        add(queued, now, is_long ? PathClass::kUnknown : PathClass::kLatency, recorded, graph_.nodes[node].row);
        add(from, queued, PathClass::kHost, recorded, graph_.nodes[edge.source].row);
      }
      now = std::min(now, from);
      if (edge.from_end) {
        add_work(edge.source, now);
        now = std::min(now, played_.time_ns[edge.source]);
      }
      node = edge.source;
    }
    reached_by_ = kEdgeKindCount;
    if (now > played_.start_ns) add(played_.start_ns, now, PathClass::kUnknown, {played_.start_ns, now}, kNoRow);
    std::reverse(out_.pieces.begin(), out_.pieces.end());
  }

 private:
  // Work that waited while another stream worked, and began before that one's end: what passed is that one's work.
  bool is_beside(const GraphEdge& edge) const {
    return edge.kind == EdgeKind::kOtherStream && !edge.from_end && graph_.nodes[edge.source].is_device();
  }

  void add_work(NodeId node, int64_t until) {
    const GraphNode& work = graph_.nodes[node];
    const uint32_t e = played_.binding[node];
    reached_by_ = e == kNoRow ? uint8_t{kEdgeKindCount} : static_cast<uint8_t>(graph_.edges[e].kind);
    add(played_.time_ns[node], until, class_of(work.device_class), {work.time_ns, work.time_ns + work.duration_ns},
        work.row);
  }

  // One stretch of a chain: cut by what is input and what is not, stretched to its length in the replay.
  void add_host(uint32_t chain, NodeId source, NodeId target, int64_t from, int64_t until) {
    const Interval recorded{graph_.nodes[source].time_ns, graph_.nodes[target].time_ns};
    const int64_t start = std::max(from, played_.start_ns);
    if (until <= start) return;
    ActivityTimes times = host_.chains[chain].times_in(recorded.start_ns, recorded.end_ns, segment_of_[chain]);
    // A replay is without the wait for a core.
    const int64_t waited_ns = std::exchange(times[static_cast<size_t>(Activity::kNoCore)], 0);
    const int64_t length = until - start;
    const int64_t recorded_ns = recorded.end_ns - recorded.start_ns - waited_ns;
    int64_t given = 0;
    constexpr auto kIdle = static_cast<size_t>(Activity::kUnrecorded);
    size_t largest = kIdle;
    std::array<int64_t, kActivityCount> parts{};
    for (size_t i = 0; i < kActivityCount; ++i) {
      if (recorded_ns > 0) {
        parts[i] = static_cast<int64_t>(static_cast<double>(length) * static_cast<double>(times[i]) /
                                        static_cast<double>(recorded_ns));
      }
      given += parts[i];
      if (times[i] > times[largest]) largest = i;
    }
    parts[largest] += length - given;
    for (size_t i = 0; i < kActivityCount; ++i) out_.host[i] += parts[i];
    const int64_t input = std::clamp<int64_t>(parts[static_cast<size_t>(Activity::kInput)], 0, length);
    const int64_t ranks = std::clamp<int64_t>(parts[static_cast<size_t>(Activity::kCollective)], 0, length - input);
    add(until - input, until, PathClass::kInput, recorded, kNoRow);
    add(until - input - ranks, until - input, PathClass::kCommunication, recorded, kNoRow);
    const int64_t rest = length - input - ranks;
    const int64_t idle = host_.leads ? 0 : std::clamp<int64_t>(parts[kIdle], 0, rest);
    add(start + idle, start + rest, PathClass::kHost, recorded, graph_.nodes[target].row);
    add(start, start + idle, PathClass::kUnknown, recorded, kNoRow);
  }

  void add(int64_t start_ns, int64_t end_ns, PathClass path_class, Interval recorded, Row row) {
    start_ns = std::max(start_ns, played_.start_ns);
    if (end_ns <= start_ns) return;
    out_.by_class[static_cast<size_t>(path_class)] += end_ns - start_ns;
    out_.by_edge[reached_by_] += end_ns - start_ns;
    out_.pieces.push_back({start_ns, end_ns, path_class, recorded, reached_by_, row});
  }

  const HostTime& host_;
  const Graph& graph_;
  const Replay& played_;
  CriticalPath& out_;
  std::vector<size_t> segment_of_;  // by chain: where the walk is
  uint8_t reached_by_ = kEdgeKindCount;
};

}  // namespace

std::string_view name_of(PathClass path_class) {
  static constexpr std::array<std::string_view, kPathClassCount> kNames = {
      "host", "input", "compute", "communication", "copy", "latency", "unknown"};
  return kNames[static_cast<size_t>(path_class)];
}

PathTimes CriticalPath::times_in(int64_t start_ns_, int64_t end_ns) const {
  PathTimes times{};
  auto piece = std::partition_point(pieces.begin(), pieces.end(),
                                    [&](const PathPiece& each) { return each.end_ns <= start_ns_; });
  for (; piece != pieces.end() && piece->start_ns < end_ns; ++piece) {
    times[static_cast<size_t>(piece->path_class)] +=
        std::min(end_ns, piece->end_ns) - std::max(start_ns_, piece->start_ns);
  }
  return times;
}

CriticalPath critical_path(const HostTime& host, const Graph& graph, const Replay& played) {
  CriticalPath path{.start_ns = played.start_ns, .total_ns = played.total_ns()};
  if (played.last == kNoNode || path.total_ns <= 0) return path;
  Walk(host, graph, played, path).run();
  FL_CHECK(std::accumulate(path.by_class.begin(), path.by_class.end(), int64_t{0}) == path.total_ns,
           "critical_path: classes must add up to the window");
  return path;
}

}  // namespace firelane::analyze
