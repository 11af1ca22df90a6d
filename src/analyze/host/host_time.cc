#include "analyze/host/host_time.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "analyze/host/core_time.h"
#include "analyze/host/host_calls.h"
#include "base/check.h"
#include "base/gallop.h"
#include "base/text.h"
#include "model/host_role.h"

namespace firelane::analyze {

namespace {

Activity activity_of_python(std::string_view name) {
  if (is_collection(role_of(name)) || is_gc_call(name)) return Activity::kGc;
  if (contains(name, "torch/utils/data/dataloader.py") && contains(name, "__next__")) return Activity::kInput;
  if (contains(name, "torch/profiler/") || contains(name, "firelane/profiler/")) return Activity::kRecorder;
  return Activity::kPython;
}

Activity activity_of_call(std::string_view name) {
  switch (call_kind(name)) {
    case CallKind::kLaunch:
    case CallKind::kCopy: return Activity::kLaunch;
    case CallKind::kStreamSync:
    case CallKind::kDeviceSync:
    case CallKind::kEventSync: return Activity::kSync;
    case CallKind::kAllocation:
    case CallKind::kFree: return Activity::kAllocation;
    case CallKind::kLoading: return Activity::kLoading;
    case CallKind::kOther: return Activity::kCall;
  }
  return Activity::kCall;
}

bool is_loading(std::string_view overhead_name) { return contains(overhead_name, "Loading"); }

// The activity of a slice by its own name and kind; nullopt-like kInherit: as what it lies in.
constexpr uint8_t kInherit = 200;
uint8_t own_activity(HostKind kind, std::string_view name) {
  if (loads_batch(role_of(name))) return static_cast<uint8_t>(Activity::kInput);
  switch (kind) {
    case HostKind::kOp: return static_cast<uint8_t>(Activity::kOp);
    case HostKind::kPython: return static_cast<uint8_t>(activity_of_python(name));
    case HostKind::kRuntime:
    case HostKind::kDriver: return static_cast<uint8_t>(activity_of_call(name));
    case HostKind::kOverhead: return static_cast<uint8_t>(is_loading(name) ? Activity::kLoading : Activity::kRecorder);
    case HostKind::kAnnotation:
    case HostKind::kSpan:
    case HostKind::kOther: return kInherit;
  }
  return kInherit;
}

// Own activities, each (kind, name) looked at once.
class Activities {
 public:
  explicit Activities(const Model& model) : model_(model), known_(model.strings.size(), 0) {}
  uint8_t of(Row row) {
    const HostKind kind = model_.host_slices.kind[row];
    uint16_t& known = known_[static_cast<uint32_t>(model_.host_slices.name[row])];
    const auto tag = static_cast<uint16_t>((static_cast<uint16_t>(kind) + 1) << 8);
    if ((known & 0xff00) != tag) {
      known = static_cast<uint16_t>(tag | own_activity(kind, model_.text(model_.host_slices.name[row])));
    }
    return static_cast<uint8_t>(known & 0xff);
  }

 private:
  const Model& model_;
  std::vector<uint16_t> known_;
};

void append(std::vector<HostSegment>& out, int64_t start_ns, int64_t end_ns, Activity activity, Row slice) {
  if (end_ns <= start_ns) return;
  if (!out.empty() && out.back().slice == slice && out.back().activity == activity) {
    out.back().end_ns = end_ns;
  } else {
    out.push_back({start_ns, end_ns, activity, slice});
  }
}

// The segments of one lane over [0, end): innermost open slice wins.
class LaneSweep {
 public:
  LaneSweep(const Model& model, Activities& activities, std::vector<HostSegment>& out)
      : model_(model), activities_(activities), out_(out) {}

  void run(size_t lane, int64_t end_ns) {
    const HostSlices& slices = model_.host_slices;
    for (Row row = model_.lanes.host_begin[lane]; row < model_.lanes.host_end[lane]; ++row) {
      if (slices.kind[row] == HostKind::kSpan) continue;
      const int64_t start = slices.start_ns[row];
      const int64_t end = slices.end_ns(row);
      while (!open_.empty() && open_.back().end_ns <= start) close();
      advance(start);
      while (!open_.empty() && open_.back().end_ns < end) open_.pop_back();  // outlived: torch's rule
      const Activity above = open_.empty() ? Activity::kUnrecorded : open_.back().activity;
      const uint8_t own = activities_.of(row);
      const bool sticky = above == Activity::kInput || above == Activity::kGc;
      open_.push_back({end, own == kInherit || sticky ? above : static_cast<Activity>(own), row});
    }
    while (!open_.empty()) close();
    advance(std::max(end_ns, now_ns_));
  }

 private:
  struct Open {
    int64_t end_ns;
    Activity activity;
    Row row;
  };
  void advance(int64_t to_ns) {
    if (open_.empty()) {
      append(out_, now_ns_, to_ns, Activity::kUnrecorded, kNoRow);
    } else {
      append(out_, now_ns_, to_ns, open_.back().activity, open_.back().row);
    }
    now_ns_ = std::max(now_ns_, to_ns);
  }
  void close() {
    advance(open_.back().end_ns);
    open_.pop_back();
  }

  const Model& model_;
  Activities& activities_;
  std::vector<HostSegment>& out_;
  std::vector<Open> open_;
  int64_t now_ns_ = 0;
};

// `over` replaces `under` wherever `over` has an open slice (or where `covers` says so).
template <typename Covers>
std::vector<HostSegment> overlay(std::span<const HostSegment> under, std::span<const HostSegment> over,
                                 const Covers& covers) {
  std::vector<HostSegment> out;
  out.reserve(under.size() + 2 * over.size() + 1);
  size_t u = 0;
  size_t o = 0;
  int64_t now = under.empty() ? 0 : under.front().start_ns;
  const int64_t end = under.empty() ? 0 : under.back().end_ns;
  while (now < end) {
    while (u < under.size() && under[u].end_ns <= now) ++u;
    while (o < over.size() && over[o].end_ns <= now) ++o;
    // Most stretches of a long chain have nothing over them.
    const int64_t free_until = o < over.size() ? over[o].start_ns : INT64_MAX;
    size_t last = u;
    while (last + 1 < under.size() && under[last + 1].start_ns == under[last].end_ns &&
           under[last + 1].end_ns <= free_until)
      ++last;
    if (last > u && under[u].end_ns <= free_until) {
      append(out, now, under[u].end_ns, under[u].activity, under[u].slice);
      out.insert(out.end(), under.begin() + static_cast<std::ptrdiff_t>(u) + 1,
                 under.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      now = under[last].end_ns;
      continue;
    }
    int64_t until = u < under.size() ? under[u].end_ns : end;
    if (o < over.size()) until = std::min(until, over[o].start_ns > now ? over[o].start_ns : over[o].end_ns);
    const bool is_over = o < over.size() && over[o].start_ns <= now && covers(over[o], under[u]);
    const HostSegment& from = is_over ? over[o] : under[u];
    append(out, now, until, from.activity, from.slice);
    now = until;
  }
  return out;
}

// The same in place: a chain of millions of segments mostly has little over it, and a copy would be as large again.
template <typename Covers>
void lay_over(std::vector<HostSegment>& under, const std::vector<HostSegment>& over, const Covers& covers) {
  struct Block {
    size_t begin, end;  // of `under`
    std::vector<HostSegment> instead;
  };
  std::vector<Block> blocks;
  for (size_t o = 0; o < over.size();) {
    // With the segment before and the one after: what is put over them may be the same activity.
    const auto ended = [&](int64_t at) {
      const auto found = std::partition_point(under.begin(), under.end(),
                                              [&](const HostSegment& segment) { return segment.end_ns <= at; });
      return static_cast<size_t>(found - under.begin());
    };
    const size_t begin = ended(over[o].start_ns);
    if (begin == under.size()) break;
    size_t end = begin;
    size_t next = o;
    for (; next < over.size() && (next == o || ended(over[next].start_ns) <= end + 2); ++next) {
      while (end < under.size() && under[end].start_ns < over[next].end_ns) ++end;
    }
    const size_t from = begin - std::min<size_t>(begin, 1);
    const size_t to = std::min(under.size(), end + 1);
    blocks.push_back(
        {from, to, overlay(std::span(under).subspan(from, to - from), std::span(over).subspan(o, next - o), covers)});
    o = next;
  }
  // What lies between blocks moves by what the blocks before it grew: to the left from the front, to the right from the
  // back, so that nothing is written over that still has to move.
  std::vector<std::ptrdiff_t> shift(blocks.size());
  std::ptrdiff_t grown = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    grown += static_cast<std::ptrdiff_t>(blocks[b].instead.size()) -
             static_cast<std::ptrdiff_t>(blocks[b].end - blocks[b].begin);
    shift[b] = grown;
  }
  const size_t size = under.size();
  if (grown > 0) {
    under.reserve(size + static_cast<size_t>(grown));
    under.resize(size + static_cast<size_t>(grown));
  }
  const auto move_after = [&](size_t b) {
    const auto begin = under.begin() + static_cast<std::ptrdiff_t>(blocks[b].end);
    const auto end = under.begin() + static_cast<std::ptrdiff_t>(b + 1 < blocks.size() ? blocks[b + 1].begin : size);
    if (shift[b] < 0) std::move(begin, end, begin + shift[b]);
    if (shift[b] > 0) std::move_backward(begin, end, end + shift[b]);
  };
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (shift[b] < 0) move_after(b);
  }
  for (size_t b = blocks.size(); b-- > 0;) {
    if (shift[b] > 0) move_after(b);
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    const std::ptrdiff_t before = b > 0 ? shift[b - 1] : 0;
    std::copy(blocks[b].instead.begin(), blocks[b].instead.end(),
              under.begin() + static_cast<std::ptrdiff_t>(blocks[b].begin) + before);
  }
  under.resize(static_cast<size_t>(static_cast<std::ptrdiff_t>(size) + grown));
}

struct LaneUse {
  int64_t launches = 0;
  int64_t leaves = 0;  // ops and calls
  int64_t busy_ns = 0;
};

std::vector<LaneUse> count_use(const Model& model) {
  std::vector<LaneUse> use(model.lanes.size());
  const HostSlices& slices = model.host_slices;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
      const HostKind kind = slices.kind[row];
      use[lane].leaves += kind == HostKind::kOp || is_call(kind);
      if (slices.parent[row] == kNoRow && kind != HostKind::kSpan && kind != HostKind::kOverhead) {
        use[lane].busy_ns += slices.duration_ns[row];
      }
    }
  }
  // Where a thread of its own makes the calls (Ascend's task queue), the work is also that of whoever asked for it.
  for (Row work = 0; work < model.device_slices.size(); ++work) {
    const Row launch = model.device_slices.launch[work];
    const Row op = model.device_slices.op[work];
    if (launch == kNoRow) continue;
    ++use[static_cast<uint32_t>(slices.lane[launch])].launches;
    if (op != kNoRow && slices.lane[op] != slices.lane[launch]) ++use[static_cast<uint32_t>(slices.lane[op])].launches;
  }
  return use;
}

// The lane of the steps, else the one that launches the most, else the busiest with ops.
size_t leading_lane(const Model& model, const std::vector<LaneUse>& use) {
  for (const Row step : model.steps.slice) {
    if (step == kNoRow) continue;
    const auto lane = static_cast<size_t>(model.host_slices.lane[step]);
    if (use[lane].leaves > 0) return lane;
  }
  const auto better = [&](size_t a, size_t b) {
    if (use[a].launches != use[b].launches) return use[a].launches < use[b].launches;
    if ((use[a].leaves > 0) != (use[b].leaves > 0)) return use[b].leaves > 0;
    return use[a].busy_ns < use[b].busy_ns;
  };
  size_t best = 0;
  for (size_t lane = 1; lane < use.size(); ++lane) best = better(best, lane) ? lane : best;
  return best;
}

IntervalSet top_level(const Model& model, size_t lane) {
  std::vector<Interval> open;
  const HostSlices& slices = model.host_slices;
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
    const bool counts = slices.kind[row] == HostKind::kOp || is_call(slices.kind[row]);
    if (counts) open.push_back({slices.start_ns[row], slices.end_ns(row)});
  }
  return IntervalSet(std::move(open));
}

// Whether `leader` does next to nothing itself while `lane` works: then it waits for it.
bool runs_while_waiting(const Model& model, size_t leader, size_t lane, const LaneUse& use) {
  const IntervalSet busy = top_level(model, lane);
  const HostSlices& slices = model.host_slices;
  size_t at = 0;
  int64_t together = 0;
  for (Row row = model.lanes.host_begin[leader]; row < model.lanes.host_end[leader]; ++row) {
    if (slices.kind[row] != HostKind::kOp && !is_call(slices.kind[row])) continue;
    while (at < busy.intervals().size() && busy.intervals()[at].end_ns <= slices.start_ns[row]) ++at;
    if (at == busy.intervals().size()) break;
    together += busy.intervals()[at].start_ns <= slices.start_ns[row];
  }
  return together * 20 <= use.leaves;
}

bool is_thread(const Model& model, size_t lane) { return model.lanes.kind[lane] == LaneKind::kThread; }

bool same_process(const Model& model, size_t a, size_t b) {
  return model.lanes.pid[a].number == model.lanes.pid[b].number && model.lanes.pid[a].text == model.lanes.pid[b].text;
}

// Steps are run by a thread; without them, one that launches at least a third of what its process does is the program.
// Where nothing on the device is known to be launched (TPUs run whole programs), what the host did decides nothing.
bool has_leader(const Model& model, const std::vector<LaneUse>& use, const HostChain& chain) {
  const auto leader = static_cast<size_t>(chain.lanes[0]);
  LaneUse all;
  for (size_t lane = 0; lane < use.size(); ++lane) {
    all.leaves += use[lane].leaves;
    all.busy_ns += use[lane].busy_ns;
    if (is_thread(model, lane) && same_process(model, lane, leader)) all.launches += use[lane].launches;
  }
  int64_t launches = 0;
  for (const LaneId lane : chain.lanes) launches += use[static_cast<size_t>(lane)].launches;
  const bool is_recorded = all.leaves > 0 || all.busy_ns > 0;
  const bool is_fed = all.launches > 0 ||
                      std::none_of(model.device_slices.kind.begin(), model.device_slices.kind.end(), is_device_work);
  return is_recorded && is_fed && (model.steps.size() > 0 || 3 * launches >= all.launches);
}

// In order of time; of segments that overlap the earlier one has the moments of both.
void each_moment_once(std::vector<HostSegment>& segments) {
  std::sort(segments.begin(), segments.end(),
            [](const HostSegment& a, const HostSegment& b) { return a.start_ns < b.start_ns; });
  int64_t last_end = INT64_MIN;
  for (HostSegment& segment : segments) {
    segment.start_ns = std::max(segment.start_ns, last_end);
    segment.end_ns = std::max(segment.end_ns, segment.start_ns);
    last_end = segment.end_ns;
  }
}

// Overhead slices stand on a lane of their own; they are what the threads did meanwhile.
std::vector<HostSegment> overhead_segments(const Model& model) {
  std::vector<HostSegment> out;
  const HostSlices& slices = model.host_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (slices.kind[row] != HostKind::kOverhead || slices.duration_ns[row] == 0) continue;
    const Activity activity = is_loading(model.text(slices.name[row])) ? Activity::kLoading : Activity::kRecorder;
    out.push_back({slices.start_ns[row], slices.end_ns(row), activity, row});
  }
  each_moment_once(out);
  return out;
}

// Shorter stretches without an operator are Python on its way to the next one, beside a collective that overlaps.
constexpr int64_t kLeastWaitNs = 100'000;

// When collectives of CPU backends ran, in threads of their own. c10d ends the range of some in another thread than the
// one that began it, and the end is lost: a range is cut at the end of the step in which it began.
std::vector<HostSegment> collective_segments(const Model& model, size_t leader) {
  const HostSlices& slices = model.host_slices;
  std::vector<Interval> steps;
  for (const Row row : model.steps.slice) {
    if (row != kNoRow) steps.push_back({slices.start_ns[row], slices.end_ns(row)});
  }
  std::sort(steps.begin(), steps.end(), [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  std::vector<HostSegment> out;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    if (lane == leader || !is_thread(model, lane) || !same_process(model, lane, leader)) continue;
    for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
      if (!model.is_host_collective(row)) continue;
      int64_t end_ns = slices.end_ns(row);
      const auto after = std::partition_point(
          steps.begin(), steps.end(), [&](const Interval& step) { return step.start_ns <= slices.start_ns[row]; });
      if (after != steps.begin()) end_ns = std::min(end_ns, std::max(std::prev(after)->end_ns, slices.start_ns[row]));
      out.push_back({slices.start_ns[row], end_ns, Activity::kCollective, row});
    }
  }
  each_moment_once(out);
  return out;
}

}  // namespace

bool is_gc_call(std::string_view python_function) {
  return contains(python_function, "built-in method gc.collect") || python_function == "<built-in function collect>";
}

std::string_view name_of(Activity activity) {
  static constexpr std::array<std::string_view, kActivityCount> kNames = {
      "input", "python",  "op",       "launch",     "call",    "sync",      "allocation",
      "gc",    "loading", "recorder", "collective", "no_core", "unrecorded"};
  return kNames[static_cast<size_t>(activity)];
}

size_t HostChain::segment_after(int64_t time_ns) const {
  const auto found = std::partition_point(segments.begin(), segments.end(),
                                          [&](const HostSegment& segment) { return segment.end_ns <= time_ns; });
  return static_cast<size_t>(found - segments.begin());
}

size_t HostChain::segment_after(int64_t time_ns, size_t& near) const {
  const auto found = gallop_from(segments.begin() + static_cast<std::ptrdiff_t>(near), segments.begin(), segments.end(),
                                 [&](const HostSegment& segment) { return segment.end_ns <= time_ns; });
  near = static_cast<size_t>(found - segments.begin());
  return near;
}

ActivityTimes HostChain::times_in(int64_t start_ns, int64_t end_ns) const {
  size_t first = segment_after(start_ns);
  return times_in(start_ns, end_ns, first);
}

ActivityTimes HostChain::times_in(int64_t start_ns, int64_t end_ns, size_t& near) const {
  ActivityTimes times{};
  if (end_ns <= start_ns) return times;
  int64_t named_ns = 0;
  for (size_t i = segment_after(start_ns, near); i < segments.size() && segments[i].start_ns < end_ns; ++i) {
    const int64_t part = std::min(end_ns, segments[i].end_ns) - std::max(start_ns, segments[i].start_ns);
    times[static_cast<size_t>(segments[i].activity)] += part;
    named_ns += part;
  }
  times[static_cast<size_t>(Activity::kUnrecorded)] += end_ns - start_ns - named_ns;
  FL_CHECK(std::accumulate(times.begin(), times.end(), int64_t{0}) == end_ns - start_ns,
           "host_time: activities must cover the window exactly");
  return times;
}

HostTime host_time(const Model& model) {
  HostTime result;
  result.chain_of_lane.assign(model.lanes.size(), kNoRow);
  if (model.lanes.size() == 0) return result;
  const std::vector<LaneUse> use = count_use(model);
  const size_t leader = leading_lane(model, use);
  Activities activities(model);
  const int64_t end_ns = model.info.duration_ns;
  const std::vector<HostSegment> overhead = overhead_segments(model);
  const auto sweep = [&](size_t lane) {
    std::vector<HostSegment> segments;
    // And room for what is laid over it: a vector of millions that grows is there twice for a moment.
    segments.reserve(2 * (model.lanes.host_end[lane] - model.lanes.host_begin[lane]) + 1 + 2 * overhead.size());
    LaneSweep(model, activities, segments).run(lane, end_ns);
    return segments;
  };
  const auto is_open = [](const HostSegment& over, const HostSegment&) { return over.slice != kNoRow; };
  result.chains.push_back({{static_cast<LaneId>(leader)}, sweep(leader)});
  result.chain_of_lane[leader] = 0;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    if (lane == leader || use[lane].leaves == 0 || !is_thread(model, lane)) continue;
    const bool joins = same_process(model, lane, leader) && use[lane].launches > 0 &&
                       runs_while_waiting(model, leader, lane, use[lane]);
    if (joins) {
      HostChain& chain = result.chains[0];
      lay_over(chain.segments, sweep(lane), is_open);
      chain.lanes.push_back(static_cast<LaneId>(lane));
      result.chain_of_lane[lane] = 0;
    } else {
      result.chain_of_lane[lane] = static_cast<uint32_t>(result.chains.size());
      result.chains.push_back({{static_cast<LaneId>(lane)}, sweep(lane)});
    }
  }
  result.leads = has_leader(model, use, result.chains[0]);
  if (const std::vector<HostSegment> collectives = collective_segments(model, leader); !collectives.empty()) {
    // Also in the operator that starts it, where the backend makes that one wait.
    const StringId reduces = model.strings.find("c10d::allreduce_");
    const auto waits = [&](const HostSegment&, const HostSegment& under) {
      const bool between = under.activity == Activity::kPython || under.activity == Activity::kUnrecorded;
      const bool starts_it =
          reduces != kNoString && under.slice != kNoRow && model.host_slices.name[under.slice] == reduces;
      return (between || starts_it) && under.end_ns - under.start_ns >= kLeastWaitNs;
    };
    lay_over(result.chains[0].segments, collectives, waits);
  }
  if (!overhead.empty()) {
    const auto hides = [](const HostSegment&, const HostSegment& under) {
      return under.activity != Activity::kSync && under.activity != Activity::kInput;
    };
    for (HostChain& chain : result.chains) lay_over(chain.segments, overhead, hides);
  }
  result.no_core = lay_waits(model, result.chains[0]);
  return result;
}

}  // namespace firelane::analyze
