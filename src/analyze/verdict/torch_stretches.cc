#include "analyze/verdict/torch_stretches.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "analyze/verdict/torch_costs.h"
#include "base/check.h"

namespace firelane::analyze {

namespace {

// Which part of a stretch is the profiler's, and of how much of it at most.
struct Shares {
  double op;      // between operators
  double shapes;  // between operators that are recorded with their inputs
  double python;  // where a Python function begins or ends
  double most;    // of a stretch, in usual ones

  double of(bool is_python, bool has_shapes_) const { return is_python ? python : has_shapes_ ? shapes : op; }
};
constexpr Shares kOfQuietStep = {.op = 0.44, .shapes = 0.64, .python = 0.78, .most = 3};
constexpr Shares kOfOneStep = {.op = 0.54, .shapes = 0.6, .python = 0.73, .most = 10};
constexpr double kQuiet = 1.0 / 3;  // of the steps, for each stretch
// Multiple of the shortest step's: what takes longer is not noise. Where an operator waits for new pages in most steps,
// it still finds old ones in some, as it does without the profiler.
constexpr double kNoise = 1.2;
constexpr size_t kLeastStretches = 20;
// The usual stretch, which is 0.2 to 0.9 us in nine of ten traces of the host that the shares were fitted on. Where it
// is longer than on any host, even the usual operator computes.
constexpr int64_t kLongestUsualNs = 2'000;
constexpr size_t kMostSteps = 64;  // more make a stretch no more certain

bool is_recorded(HostKind kind) {
  return kind == HostKind::kOp || kind == HostKind::kAnnotation || kind == HostKind::kPython;
}

// visit(time, row, is_end) for each begin and end of what begins on a lane in `part` and does not outlive it.
template <typename Visit>
void each_moment(const Model& model, LaneId lane, const Interval& part, const Visit& visit) {
  const HostSlices& slices = model.host_slices;
  const auto l = static_cast<size_t>(lane);
  const auto from_time = [&](Row from, int64_t time_ns) {
    Row to = model.lanes.host_end[l];
    while (from < to) {
      const Row middle = from + (to - from) / 2;
      (slices.start_ns[middle] < time_ns ? from = middle + 1 : to = middle);
    }
    return from;
  };
  const Row first = from_time(model.lanes.host_begin[l], part.start_ns);
  const Row last = from_time(first, part.end_ns);
  std::vector<Row> open;
  const auto close_until = [&](int64_t time_ns) {
    for (; !open.empty() && slices.end_ns(open.back()) <= time_ns; open.pop_back()) {
      visit(slices.end_ns(open.back()), open.back(), true);
    }
  };
  for (Row row = first; row < last; ++row) {
    if (!is_recorded(slices.kind[row])) continue;
    close_until(slices.start_ns[row]);
    visit(slices.start_ns[row], row, false);
    open.push_back(row);
  }
  close_until(part.end_ns);
}

// The stretches of a step, lane by lane, and what lies between them.
struct StepStretches {
  std::vector<int64_t> ns;
  std::vector<bool> at_python;  // a Python function begins or ends at one of its ends
  size_t leading = 0;           // so many of the first are of the leading lane: they add up to the step
  uint64_t events = 0;          // a hash
};

class StretchReader {
 public:
  StretchReader(const Model& model, const HostTime& host) : model_(model), host_(host) {}

  StepStretches step(const Interval& span) const {
    StepStretches out;
    for (const LaneId lane : host_.chains[0].lanes) {
      const bool leads = lane == host_.chains[0].lanes[0];
      int64_t last_ns = leads ? span.start_ns : kNoNumber;
      bool after_python = false;
      const auto add = [&](int64_t time_ns, bool is_python) {
        if (last_ns != kNoNumber) {
          out.ns.push_back(std::max<int64_t>(0, time_ns - last_ns));
          out.at_python.push_back(is_python || after_python);
        }
        last_ns = std::max(last_ns, time_ns);
        after_python = is_python;
      };
      each_moment(model_, lane, span, [&](int64_t time_ns, Row row, bool is_end) {
        add(time_ns, model_.host_slices.kind[row] == HostKind::kPython);
        out.events = out.events * 0x9E3779B97F4A7C15ULL + what(row) * 2 + (is_end ? 1 : 0) + 1;
      });
      if (!leads) continue;
      add(span.end_ns, false);
      out.leading = out.ns.size();
    }
    return out;
  }

  // The profiler's part of all stretches, put on the event that each follows.
  RecorderCharges charges(int64_t usual_ns, bool shapes) const {
    RecorderCharges out(host_.chains.size());
    const double most = kOfOneStep.most * static_cast<double>(usual_ns);
    for (size_t chain = 0; chain < host_.chains.size(); ++chain) {
      for (const LaneId lane : host_.chains[chain].lanes) {
        int64_t last_ns = kNoNumber;
        bool after_python = false;
        each_moment(model_, lane, {INT64_MIN, INT64_MAX}, [&](int64_t time_ns, Row row, bool is_end) {
          const bool is_python = model_.host_slices.kind[row] == HostKind::kPython;
          if (last_ns != kNoNumber && time_ns > last_ns) {
            out[chain].back().ns += kOfOneStep.of(is_python || after_python, shapes) *
                                    std::min(most, static_cast<double>(time_ns - last_ns));
          }
          if (!is_end) out[chain].push_back({.time_ns = time_ns});
          last_ns = last_ns == kNoNumber ? time_ns : std::max(last_ns, time_ns);
          after_python = is_python;
        });
      }
    }
    return out;
  }

 private:
  // Names of Python functions hold addresses, those of annotations numbers of steps: only operators have to agree.
  uint64_t what(Row row) const {
    const HostKind kind = model_.host_slices.kind[row];
    const auto name = kind == HostKind::kOp ? static_cast<uint64_t>(model_.host_slices.name[row]) + 1 : 0;
    return name << 4 | static_cast<uint64_t>(kind);
  }

  const Model& model_;
  const HostTime& host_;
};

int64_t usual_stretch_ns(std::vector<int64_t> lengths) {
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return std::min(*middle, kLongestUsualNs);
}

// More than half of the steps, with the same events; otherwise none.
std::vector<const StepStretches*> steps_alike(const std::vector<StepStretches>& steps) {
  std::unordered_map<uint64_t, std::vector<const StepStretches*>> by_events;
  for (const StepStretches& step : steps) by_events[step.events].push_back(&step);
  for (auto& [events, group] : by_events) {
    const StepStretches& first = *group[0];
    std::erase_if(group, [&](const StepStretches* each) {
      return each->ns.size() != first.ns.size() || each->leading != first.leading;
    });
    if (group.size() >= 2 && 2 * group.size() > steps.size()) return std::move(group);
  }
  return {};
}

// As long as it is in the quiet third of the steps: between two of them in proportion.
int64_t quiet_ns(std::vector<int64_t>& lengths) {
  std::sort(lengths.begin(), lengths.end());
  const double place = std::max(0.0, kQuiet * static_cast<double>(lengths.size() + 1) - 1);
  const auto below = static_cast<size_t>(place);
  const auto above = std::min(below + 1, lengths.size() - 1);
  const double part = place - static_cast<double>(below);
  return lengths[below] + std::llround(part * static_cast<double>(lengths[above] - lengths[below]));
}

// In which the program computes: the mean of those that differ by noise, which it has without the profiler, too. Two
// steps do not tell noise from an interruption: the shorter one. REQUIRES: sorted.
int64_t computing_ns(const std::vector<int64_t>& lengths) {
  if (lengths.size() == 2) return lengths[0];
  int64_t sum = 0;
  int64_t count = 0;
  for (const int64_t ns : lengths) {
    if (static_cast<double>(ns) > kNoise * static_cast<double>(lengths[0])) break;
    sum += ns;
    ++count;
  }
  return sum / count;
}

// And up to how much of a stretch counts for the profiler.
std::pair<StepStretches, double> quiet_step(const std::vector<const StepStretches*>& group) {
  StepStretches out = *group[0];
  std::vector<int64_t> lengths;
  std::vector<int64_t> computing;
  for (size_t i = 0; i < out.ns.size(); ++i) {
    lengths.clear();
    for (const StepStretches* step : group) lengths.push_back(step->ns[i]);
    out.ns[i] = quiet_ns(lengths);
    computing.push_back(computing_ns(lengths));
  }
  const double most = kOfQuietStep.most * static_cast<double>(usual_stretch_ns(out.ns));
  for (size_t i = 0; i < out.ns.size(); ++i) {
    if (static_cast<double>(out.ns[i]) > most) out.ns[i] = computing[i];
  }
  return {std::move(out), most};
}

}  // namespace

TorchStretches torch_stretches(const Model& model, const HostTime& host, const StepList& steps) {
  TorchStretches out;
  if (host.chains.empty() || host.chains[0].lanes.empty()) return out;
  const StretchReader reader(model, host);
  const bool shapes = has_shapes(model);
  std::vector<StepStretches> read;
  std::vector<int64_t> all;
  for (const FoundStep& step : steps.steps) {
    if (step.warm_up || read.size() >= kMostSteps) continue;
    read.push_back(reader.step({step.start_ns, step.end_ns}));
    all.insert(all.end(), read.back().ns.begin(), read.back().ns.end());
  }
  if (all.size() < kLeastStretches) return out;
  out.charges = reader.charges(usual_stretch_ns(std::move(all)), shapes);
  const std::vector<const StepStretches*> group = steps_alike(read);
  if (group.empty()) return out;
  const auto [quiet, most] = quiet_step(group);
  double removed = 0;
  out.step_ns = 0;
  for (size_t i = 0; i < quiet.ns.size(); ++i) {
    if (i < quiet.leading) out.step_ns += quiet.ns[i];
    removed += kOfQuietStep.of(quiet.at_python[i], shapes) * std::min(most, static_cast<double>(quiet.ns[i]));
  }
  // Other lanes run while the leading one waits: of no moment is more than the largest share the profiler's.
  out.removed_ns = std::llround(std::min(removed, kOfQuietStep.python * static_cast<double>(out.step_ns)));
  out.step_ns -= out.removed_ns;
  return out;
}

}  // namespace firelane::analyze
