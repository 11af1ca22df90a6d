#include "analyze/host/core_time.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/common/median.h"
#include "analyze/host/core_waits.h"

namespace firelane::analyze {

namespace {

constexpr int64_t kLeastNs = 50'000;  // a scheduler gives a core to somebody else for longer than that
constexpr int64_t kFarLonger = 3;     // times as long as its like

bool may_hold_waits(const HostSegment& segment) {
  const bool runs = segment.activity == Activity::kOp || segment.activity == Activity::kPython ||
                    segment.activity == Activity::kUnrecorded || segment.activity == Activity::kInput ||
                    segment.activity == Activity::kGc || segment.activity == Activity::kLaunch ||
                    segment.activity == Activity::kCall;
  return runs && segment.end_ns - segment.start_ns >= kLeastNs;
}

class Waits {
 public:
  Waits(const Model& model, HostChain& chain) : model_(model), chain_(chain) {}

  IntervalSet run() {
    const CoreWaits waits(model_);
    const TimedSteps& timed = model_.timed_steps;
    if (!waits.is_known()) return {};
    waited_.assign(chain_.segments.size(), 0);
    for (Row row = 0; row < timed.size(); ++row) {
      const bool is_recorded =
          timed.disturbance[row] == StepDisturbance::kRecorded || timed.disturbance[row] == StepDisturbance::kLight;
      if (!is_recorded || waits.lost_ns(row) < kLeastNs) continue;
      if (usual_.empty()) find_usual();
      give({timed.start_ns[row], timed.start_ns[row] + timed.duration_ns[row]}, waits.lost_ns(row));
    }
    return usual_.empty() ? IntervalSet() : split();
  }

 private:
  // Segments of one kind and, where a slice is open, of one name.
  uint64_t like(const HostSegment& segment) const {
    const auto name =
        segment.slice == kNoRow ? UINT32_MAX : static_cast<uint32_t>(model_.host_slices.name[segment.slice]);
    return static_cast<uint64_t>(segment.activity) << 32 | name;
  }

  void find_usual() {
    std::unordered_map<uint64_t, std::vector<int64_t>> lengths;
    for (const HostSegment& segment : chain_.segments)
      lengths[like(segment)].push_back(segment.end_ns - segment.start_ns);
    for (auto& [key, all] : lengths) usual_[key] = median(std::move(all));
  }

  void give(const Interval& step, int64_t lost_ns) {
    std::vector<size_t> in_step;
    for (size_t i = chain_.segment_after(step.start_ns);
         i < chain_.segments.size() && chain_.segments[i].start_ns < step.end_ns; ++i) {
      if (may_hold_waits(chain_.segments[i])) in_step.push_back(i);
    }
    const auto length = [&](size_t i) { return chain_.segments[i].end_ns - chain_.segments[i].start_ns; };
    std::sort(in_step.begin(), in_step.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
    int64_t left_ns = 0;  // of all of them, what is theirs
    for (const size_t i : in_step) {
      const int64_t usual_ns = usual_.at(like(chain_.segments[i]));
      const int64_t part = length(i) > kFarLonger * usual_ns ? std::min(lost_ns, length(i) - usual_ns) : 0;
      waited_[i] = part;
      lost_ns -= part;
      left_ns += length(i) - part;
    }
    if (lost_ns <= 0 || left_ns <= 0) return;
    const double part = std::min(1.0, static_cast<double>(lost_ns) / static_cast<double>(left_ns));
    for (const size_t i : in_step)
      waited_[i] += static_cast<int64_t>(part * static_cast<double>(length(i) - waited_[i]));
  }

  // A wait stands at the end of its segment.
  IntervalSet split() {
    std::vector<Interval> waits;
    std::vector<HostSegment> out;
    out.reserve(chain_.segments.size() +
                static_cast<size_t>(std::count_if(waited_.begin(), waited_.end(), [](int64_t ns) { return ns > 0; })));
    for (size_t i = 0; i < chain_.segments.size(); ++i) {
      HostSegment segment = chain_.segments[i];
      const int64_t end_ns = segment.end_ns;
      segment.end_ns -= waited_[i];
      if (segment.end_ns > segment.start_ns) out.push_back(segment);
      if (waited_[i] == 0) continue;
      out.push_back({segment.end_ns, end_ns, Activity::kNoCore, segment.slice});
      waits.push_back({segment.end_ns, end_ns});
    }
    chain_.segments = std::move(out);
    return IntervalSet(std::move(waits));
  }

  const Model& model_;
  HostChain& chain_;
  std::vector<int64_t> waited_;                  // by segment
  std::unordered_map<uint64_t, int64_t> usual_;  // length, by like()
};

}  // namespace

IntervalSet lay_waits(const Model& model, HostChain& chain) { return Waits(model, chain).run(); }

}  // namespace firelane::analyze
