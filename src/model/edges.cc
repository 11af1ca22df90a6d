// Pairs begins and ends that are events of their own: B with E on a lane (a stack), b with
// e of the same category and id. Each pair becomes one host slice; async ones lie on a
// lane of their own (kind async), so that they never disturb the nesting of a thread.
#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "model/assemble.h"

namespace firelane {

namespace {

class EdgePairer {
 public:
  EdgePairer(RawPart& out, Model& model) : out_(out), model_(model) {}

  void add(const RawEdge& edge) {
    last_ns_ = std::max(last_ns_, edge.time_ns);
    if (edge.phase == 'B' || edge.phase == 'b') {
      open_[key_of(edge)].push_back(edge);
    } else if (edge.phase == 'n') {
      out_.instants.push_back({.time_ns = edge.time_ns,
                               .source = edge.source,
                               .lane = lane_of(edge),
                               .name = edge.name,
                               .category = edge.category});
    } else {
      std::vector<RawEdge>& stack = open_[key_of(edge)];
      if (stack.empty()) {
        ++model_.losses[Stat::kEndWithoutBegin];
        return;
      }
      close(stack.back(), edge.time_ns);
      stack.pop_back();
    }
  }

  void close_the_rest(int64_t trace_end_ns) {
    const int64_t end = std::max(last_ns_, trace_end_ns);
    std::vector<RawEdge> rest;
    for (auto& [key, stack] : open_) rest.insert(rest.end(), stack.begin(), stack.end());
    std::sort(rest.begin(), rest.end(), [](const RawEdge& a, const RawEdge& b) { return a.source < b.source; });
    for (const RawEdge& edge : rest) close(edge, end);
    model_.losses[Stat::kBeginWithoutEnd] += rest.size();
  }

 private:
  // B/E pair on their lane; b/e by process (through the lane it was written on), category and id.
  uint64_t key_of(const RawEdge& edge) {
    const bool async = edge.id != kNoString;
    const auto lane = static_cast<uint32_t>(async ? lane_of(edge) : edge.lane);
    return uint64_t{async} << 63 | uint64_t{lane} << 31 |
           (async ? static_cast<uint32_t>(edge.category) & 0x7FFFFFFFu : 0);
  }

  LaneId lane_of(const RawEdge& edge) {
    if (edge.id == kNoString) return edge.lane;
    const TraceId pid = model_.lanes.pid[static_cast<uint32_t>(edge.lane)];
    const uint64_t key =
        mix_hash(mix_hash(static_cast<uint64_t>(pid.number), static_cast<uint32_t>(pid.text)),
                 uint64_t{static_cast<uint32_t>(edge.category)} << 32 | static_cast<uint32_t>(edge.id));
    const auto [at, added] = async_lanes_.try_emplace(key, LaneId{static_cast<uint32_t>(model_.lanes.pid.size())});
    if (added) {
      model_.lanes.pid.push_back(pid);
      model_.lanes.tid.push_back({.number = kNoNumber, .text = edge.id});
      model_.lanes.kind.push_back(LaneKind::kAsync);
    }
    return at->second;
  }

  void close(const RawEdge& begin, int64_t end_ns) {
    out_.host_slices.push_back({.start_ns = begin.time_ns,
                                .duration_ns = std::max<int64_t>(0, end_ns - begin.time_ns),
                                .source = begin.source,
                                .lane = lane_of(begin),
                                .name = begin.name,
                                .category = begin.category,
                                .kind = HostKind::kOther});
  }

  RawPart& out_;
  Model& model_;
  std::unordered_map<uint64_t, std::vector<RawEdge>> open_;
  std::unordered_map<uint64_t, LaneId> async_lanes_;
  int64_t last_ns_ = INT64_MIN;
};

}  // namespace

void pair_edges(RawTrace& raw, Model& model) {
  std::vector<RawEdge> edges;
  int64_t trace_end_ns = INT64_MIN;
  for (RawPart& part : raw.parts) {
    edges.insert(edges.end(), part.edges.begin(), part.edges.end());
    RawVector<RawEdge>().swap(part.edges);
  }
  if (edges.empty()) return;
  for (const RawPart& part : raw.parts) {
    for (const RawHostSlice& row : part.host_slices)
      trace_end_ns = std::max(trace_end_ns, row.start_ns + row.duration_ns);
    for (const RawDeviceSlice& row : part.device_slices)
      trace_end_ns = std::max(trace_end_ns, row.start_ns + row.duration_ns);
    for (const RawPlainWork& row : part.plain_work)
      trace_end_ns = std::max(trace_end_ns, row.start_ns + row.duration_ns);
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const RawEdge& a, const RawEdge& b) { return a.time_ns < b.time_ns; });
  EdgePairer pairer(raw.parts.emplace_back(), model);
  for (const RawEdge& edge : edges) pairer.add(edge);
  pairer.close_the_rest(trace_end_ns);
}

}  // namespace firelane
