#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/hash.h"
#include "compare/run/pieces.h"

namespace firelane::compare {

namespace {

using analyze::Activity;

// The host slice that names a place: the op around the moment, else the slice itself.
Row op_around(const Model& model, Row slice) {
  for (Row row = slice; row != kNoRow; row = model.host_slices.parent[row]) {
    if (model.host_slices.kind[row] == HostKind::kOp) return row;
  }
  return kNoRow;
}

struct Key {
  Part part = Part::kBetweenOps;
  StringId python = kNoString;
  StringId op = kNoString;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    const auto names = (uint64_t{static_cast<uint32_t>(key.python)} << 32) | static_cast<uint32_t>(key.op);
    return mix_hash(names, static_cast<uint64_t>(key.part));
  }
};

struct Tally {
  double ns = 0;
  Row example = kNoRow;
};

}  // namespace

Part part_of_activity(Activity activity) {
  switch (activity) {
    case Activity::kInput: return Part::kInput;
    case Activity::kPython:
    case Activity::kNoCore:  // of no path: replays are without it
    case Activity::kUnrecorded: return Part::kBetweenOps;
    case Activity::kOp: return Part::kOperators;
    case Activity::kLaunch: return Part::kLaunching;
    case Activity::kCall: return Part::kCalls;
    case Activity::kSync: return Part::kWaiting;
    case Activity::kAllocation: return Part::kAllocating;
    case Activity::kGc: return Part::kGc;
    case Activity::kCollective: return Part::kCommunication;
    case Activity::kLoading: return Part::kLoading;
    case Activity::kRecorder: return Part::kRecorder;
  }
  return Part::kBetweenOps;
}

std::vector<HostPlace> host_places(const Model& model, const analyze::Study& study) {
  if (study.host->chains.empty()) return {};
  // By part and by the innermost slice's name and op's name: many moments, few places.
  std::unordered_map<Key, Tally, KeyHash> tallies;
  const HostSlices& host = model.host_slices;
  const auto each_segment = [&](const analyze::PathPiece& piece, const analyze::HostChain& on, size_t first,
                                const auto& visit) {
    for (size_t i = first; i < on.segments.size() && on.segments[i].start_ns < piece.recorded.end_ns; ++i) {
      const analyze::HostSegment& segment = on.segments[i];
      const bool is_input = segment.activity == Activity::kInput;
      if (is_input != (piece.path_class == analyze::PathClass::kInput)) continue;
      visit(segment, static_cast<double>(std::min(segment.end_ns, piece.recorded.end_ns) -
                                         std::max(segment.start_ns, piece.recorded.start_ns)));
    }
  };
  std::vector<size_t> near(study.host->chains.size(), 0);  // by chain: the segment of the piece before
  for (const analyze::PathPiece& piece : study.path.pieces) {
    if (piece.path_class != analyze::PathClass::kHost && piece.path_class != analyze::PathClass::kInput) continue;
    const LaneId lane = piece.row == kNoRow ? study.host->chains[0].lanes[0] : host.lane[piece.row];
    const uint32_t found = study.host->chain_of_lane[static_cast<size_t>(lane)];
    const uint32_t chain = found == kNoRow ? 0 : found;
    const analyze::HostChain& on = study.host->chains[chain];
    const size_t first = on.segment_after(piece.recorded.start_ns, near[chain]);
    double recorded = 0;
    each_segment(piece, on, first, [&](const analyze::HostSegment&, double ns) { recorded += ns; });
    if (recorded <= 0) continue;
    const double scale = static_cast<double>(piece.end_ns - piece.start_ns) / recorded;
    each_segment(piece, on, first, [&](const analyze::HostSegment& segment, double ns) {
      const Row op = op_around(model, segment.slice);
      const bool is_python = segment.slice != kNoRow && host.kind[segment.slice] == HostKind::kPython;
      Tally& tally = tallies[{.part = part_of_activity(segment.activity),
                              .python = is_python ? host.name[segment.slice] : kNoString,
                              .op = op == kNoRow ? kNoString : host.name[op]}];
      tally.ns += ns * scale;
      if (tally.example == kNoRow) tally.example = segment.slice;
    });
  }
  std::map<std::tuple<Part, std::string, std::string>, std::vector<double>> by_line;
  for (const auto& [key, tally] : tallies) {
    by_line[{key.part, std::string(key.op == kNoString ? "" : model.text(key.op)), line_of(model, tally.example)}]
        .push_back(tally.ns);
  }
  const auto steps = static_cast<double>(std::max<int64_t>(1, study.steps.judged));
  std::vector<HostPlace> out;
  for (auto& [key, times_ns] : by_line) {
    std::sort(times_ns.begin(), times_ns.end());  // so that their sum is the same in every run, to the last digit
    const double ns = std::accumulate(times_ns.begin(), times_ns.end(), 0.0);
    out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), ns / steps});
  }
  std::stable_sort(out.begin(), out.end(), [](const HostPlace& a, const HostPlace& b) { return a.ns > b.ns; });
  return out;
}

}  // namespace firelane::compare
