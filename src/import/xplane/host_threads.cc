#include "import/xplane/host_threads.h"

#include <algorithm>
#include <map>
#include <vector>

namespace firelane::importer::xplane {

namespace {

constexpr size_t kMostAsked = 64;    // calls of a line that are looked for in each other line
constexpr double kMostInside = 0.9;  // of them have to lie in ranges of the thread
// A file may have any number of lines and levels; what is real has hundreds of the ones, tens of the others.
constexpr size_t kMostPairs = size_t{1} << 18;
constexpr int kMostLevels = 64;

struct Line {
  std::vector<size_t> slices;
  bool has_calls = false;
  bool has_others = false;
};

// What a framework did in a thread: ranges that nest.
class Ranges {
 public:
  Ranges(const RawVector<RawHostSlice>& slices, const std::vector<size_t>& of_line) {
    for (const size_t at : of_line) {
      const RawHostSlice& slice = slices[at];
      // Functions of Python are open nearly always: to lie in one says nothing.
      if (slice.kind == HostKind::kPython || slice.duration_ns <= 0) continue;
      ranges_.push_back({slice.start_ns, slice.start_ns + slice.duration_ns, kNone});
    }
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    std::vector<size_t> open;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      while (!open.empty() && ranges_[open.back()].end_ns < ranges_[i].end_ns) open.pop_back();
      if (!open.empty()) ranges_[i].around = open.back();
      open.push_back(i);
    }
  }

  // How long the innermost range around [start, end] is; kNoNumber: there is none.
  int64_t around(int64_t start_ns, int64_t end_ns) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), start_ns,
                                        [](int64_t time, const Range& range) { return time < range.start_ns; });
    if (after == ranges_.begin()) return kNoNumber;
    size_t at = static_cast<size_t>(after - ranges_.begin()) - 1;
    for (int level = 0; ranges_[at].end_ns < end_ns; ++level) {
      at = ranges_[at].around;
      if (at == kNone || level == kMostLevels) return kNoNumber;
    }
    return ranges_[at].end_ns - ranges_[at].start_ns;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Range {
    int64_t start_ns, end_ns;
    size_t around;
  };
  std::vector<Range> ranges_;
};

// How well the calls of a line fit into another one.
struct Fit {
  size_t inside = 0;
  double around_ns = 0;  // of the ranges that they lie in: shorter is closer
  bool is_better(const Fit& other) const {
    return inside != other.inside ? inside > other.inside : around_ns < other.around_ns;
  }
};

Fit fit_of(const RawVector<RawHostSlice>& slices, const std::vector<size_t>& calls, const Ranges& ranges) {
  Fit fit;
  const size_t asked = std::min(calls.size(), kMostAsked);
  for (size_t i = 0; i < asked; ++i) {
    const RawHostSlice& call = slices[calls[i * calls.size() / asked]];
    const int64_t around = ranges.around(call.start_ns, call.start_ns + call.duration_ns);
    if (around == kNoNumber) continue;
    ++fit.inside;
    fit.around_ns += static_cast<double>(around);
  }
  return fit;
}

}  // namespace

void join_host_threads(RawPart& part, size_t first) {
  RawVector<RawHostSlice>& slices = part.host_slices;
  std::map<LaneId, Line> lines;
  for (size_t i = first; i < slices.size(); ++i) {
    Line& line = lines[slices[i].lane];
    (is_call(slices[i].kind) ? line.has_calls : line.has_others) = true;
  }
  const auto with_calls = static_cast<size_t>(
      std::count_if(lines.begin(), lines.end(), [](const auto& each) { return each.second.has_calls; }));
  if (with_calls * (lines.size() - with_calls) == 0 || with_calls * (lines.size() - with_calls) > kMostPairs) return;
  for (size_t i = first; i < slices.size(); ++i) lines[slices[i].lane].slices.push_back(i);

  struct Match {
    LaneId lane{};
    Fit fit;
  };
  std::map<LaneId, Match> thread_of;  // by the lane of calls
  for (const auto& [lane, line] : lines) {
    if (line.has_calls) continue;
    const Ranges ranges(slices, line.slices);
    for (const auto& [call_lane, calls] : lines) {
      if (!calls.has_calls || calls.has_others) continue;
      const Fit fit = fit_of(slices, calls.slices, ranges);
      const size_t asked = std::min(calls.slices.size(), kMostAsked);
      if (static_cast<double>(fit.inside) < kMostInside * static_cast<double>(asked)) continue;
      const auto [found, is_first] = thread_of.try_emplace(call_lane, lane, fit);
      if (!is_first && fit.is_better(found->second.fit)) found->second = {lane, fit};
    }
  }
  // A thread has one line of calls: of several that fit, the closest one.
  std::map<LaneId, Match> calls_of;  // by the lane of the thread
  for (const auto& [call_lane, thread] : thread_of) {
    const auto [found, is_first] = calls_of.try_emplace(thread.lane, call_lane, thread.fit);
    if (!is_first && thread.fit.is_better(found->second.fit)) found->second = {call_lane, thread.fit};
  }
  for (const auto& [lane, calls] : calls_of) {
    for (const size_t at : lines[calls.lane].slices) slices[at].lane = lane;
  }
}

void find_hlo_ranges(RawPart& part, size_t first, const std::unordered_set<StringId>& hlo_ops, StringId category) {
  if (hlo_ops.empty()) return;
  for (size_t i = first; i < part.host_slices.size(); ++i) {
    RawHostSlice& slice = part.host_slices[i];
    if (slice.kind != HostKind::kAnnotation || !hlo_ops.contains(slice.name)) continue;
    slice.kind = HostKind::kOp;
    slice.category = category;
  }
}

}  // namespace firelane::importer::xplane
