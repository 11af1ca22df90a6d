#include "ranks/reduce/waits.h"

#include <algorithm>
#include <numeric>

namespace firelane::ranks {

namespace {

// Kernels start and end some microseconds beside what clocks say.
constexpr int64_t kClockSlackNs = 5'000;

int64_t lower_median(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class WaitFinder {
 public:
  WaitFinder(const Intake& intake, Matches& matches, const Clocks& clocks, const std::vector<uint32_t>& kinds,
             JobReplay& replay)
      : intake_(intake), matches_(matches), clocks_(clocks), kinds_(kinds), replay_(replay) {}

  Waits run() {
    const size_t count = matches_.instances.size();
    out_.ranks.resize(intake_.ranks.size());
    out_.group_wait_ns.assign(intake_.groups.size(), 0);
    out_.group_transfer_ns.assign(intake_.groups.size(), 0);
    for (size_t r = 0; r < intake_.ranks.size(); ++r) {
      out_.ranks[r].late_by_step.assign(intake_.ranks[r].part.steps.size() + 1, 0);
    }
    replay_.transfer_ns.assign(count, -1);
    replay_.mean_work_ns.assign(count, 0);
    replay_.median_work_ns.assign(count, 0);
    last_arrival_.assign(count, INT64_MIN);
    origin_.assign(count, UINT32_MAX);
    for (uint32_t i = 0; i < count; ++i) {
      if (waits_here(matches_.instances[i])) place(i);
    }
    replay_.order.clear();
    for (uint32_t i = 0; i < count; ++i) {
      if (replay_.transfer_ns[i] >= 0) replay_.order.push_back(i);
    }
    std::sort(replay_.order.begin(), replay_.order.end(), [&](uint32_t a, uint32_t b) {
      return last_arrival_[a] != last_arrival_[b] ? last_arrival_[a] < last_arrival_[b] : a < b;
    });
    if (!replay_.order.empty()) {
      const auto end = [&](uint32_t i) { return static_cast<double>(last_arrival_[i] + replay_.transfer_ns[i]); };
      out_.recorded_ns = end(replay_.order.back()) - end(replay_.order.front());
    }
    for (const uint32_t i : replay_.order) blame(i);
    expose();
    return std::move(out_);
  }

 private:
  bool waits_here(const Instance& instance) const {
    return synchronizes(intake_.signatures[instance.signature].op) || intake_.groups[instance.group].point_to_point;
  }
  int64_t arrival(const Member& m) const {
    return clocks_.aligned(intake_.ranks[m.rank].domain, intake_.ranks[m.rank].rows[m.row].start_ns);
  }
  int64_t end(const Member& m) const {
    return clocks_.aligned(intake_.ranks[m.rank].domain, intake_.ranks[m.rank].rows[m.row].end_ns);
  }
  std::span<const Member> members(const Instance& instance) const {
    return {matches_.members.data() + instance.begin, instance.end - instance.begin};
  }

  // When the last one arrives, and how long moving takes from then on.
  void place(uint32_t index) {
    const Instance& instance = matches_.instances[index];
    values_.clear();
    int64_t last = INT64_MIN;
    int64_t first_end = INT64_MAX;
    double bound = 0;
    bool known = true;
    for (const Member& m : members(instance)) {
      const DomainClock& clock = clocks_.domains[intake_.ranks[m.rank].domain];
      known = known && clock.known;
      bound = std::max(bound, clock.bound_ns);
      last = std::max(last, arrival(m));
      values_.push_back(end(m));
      first_end = std::min(first_end, values_.back());
    }
    if (!known) return;  // no common time: matched, but nobody can say who waited
    const bool both_ways = synchronizes(intake_.signatures[instance.signature].op);
    if (both_ways && static_cast<double>(last - first_end) > 2 * bound + kClockSlackNs) {
      GroupMatch& group = matches_.groups[instance.group];
      const auto rows = static_cast<int64_t>(instance.end - instance.begin);
      group.refused[static_cast<size_t>(Refusal::kCausality)] += rows;
      group.matched_rows -= rows;
      --group.instances;
      for (const Member& m : members(instance)) matches_.instance_of_row[m.rank][m.row] = kNoInstance;
      return;
    }
    last_arrival_[index] = last;
    replay_.transfer_ns[index] = std::max<int64_t>(0, lower_median(values_) - last);
  }

  void blame(uint32_t index) {
    const Instance& instance = matches_.instances[index];
    const int64_t last = last_arrival_[index];
    const auto all = members(instance);
    values_.clear();
    works_.clear();
    int64_t wait_sum = 0;
    int64_t bytes = 0;
    int64_t most_bytes = 0;
    const Member* latest = &all[0];
    int64_t latest_at = INT64_MIN;
    double mean = 0;
    for (const Member& m : all) {
      const CollectiveRow& row = intake_.ranks[m.rank].rows[m.row];
      const int64_t at = arrival(m);
      values_.push_back(at);
      const int64_t work = work_before(intake_.ranks[m.rank].rows, m.row).work_ns;
      works_.push_back(work);
      mean += static_cast<double>(work);
      if (at > latest_at) {
        latest = &m;
        latest_at = at;
      }
      const int64_t wait = std::clamp<int64_t>(last - at, 0, row.end_ns - row.start_ns);
      out_.ranks[m.rank].waited_ns += wait;
      wait_sum += wait;
      bytes += row.bytes;
      most_bytes = std::max(most_bytes, row.bytes);
    }
    const auto count = static_cast<int64_t>(all.size());
    mean /= static_cast<double>(count);
    const int64_t own_work = works_[static_cast<size_t>(latest - all.data())];
    const int64_t median_work = lower_median(works_);
    // The two sides of a pair do different work: there is no mean of it.
    const bool alike = !intake_.groups[instance.group].point_to_point;
    replay_.mean_work_ns[index] = alike ? static_cast<int64_t>(mean) : -1;
    replay_.median_work_ns[index] = alike ? median_work : -1;
    out_.group_wait_ns[instance.group] += wait_sum;
    out_.group_transfer_ns[instance.group] += count * replay_.transfer_ns[index];
    const int64_t size =
        intake_.signatures[instance.signature].op == Collective::kAllToAll ? bytes / count : most_bytes;
    KindWaits& kind = out_.kinds[{instance.signature, size_class(instance, size), count, kinds_[instance.group]}];
    kind.wait_ns.push_back(wait_sum / count);
    kind.transfer_ns.push_back(replay_.transfer_ns[index]);
    if (bytes > 0 && intake_.signatures[instance.signature].op == Collective::kAllToAll) {
      kind.imbalance_sum += static_cast<double>(most_bytes) * static_cast<double>(count) / static_cast<double>(bytes);
      ++kind.imbalance_count;
    }

    RankWaits& rank = out_.ranks[latest->rank];
    ++rank.last_count;
    const int64_t lateness = last - lower_median(values_);
    const int64_t own = std::clamp<int64_t>(own_work - median_work, 0, lateness);
    const int64_t inherited = lateness - own;
    const uint32_t before = instance_before(*latest);
    const uint32_t older = before == kNoInstance ? UINT32_MAX : origin_[before];
    origin_[index] = own >= inherited || older == UINT32_MAX ? latest->rank : older;
    rank.late_ns += own;
    rank.late_by_group[instance.group] += own;
    const int32_t step = intake_.ranks[latest->rank].rows[latest->row].step;
    rank.late_by_step[step < 0 ? rank.late_by_step.size() - 1 : static_cast<size_t>(step)] += own;
    if (own > rank.latest_ns) {
      rank.latest_ns = own;
      rank.latest_start_ns = intake_.ranks[latest->rank].rows[latest->row].start_ns;
    }
    if (older != UINT32_MAX && older != latest->rank) rank.passed_on_ns += inherited;
  }

  // Sizes that vary from call to call (routing of experts) are shown together.
  int64_t size_class(const Instance& instance, int64_t bytes) const {
    return intake_.signatures[instance.signature].op == Collective::kAllToAll ? 0 : bytes;
  }

  uint32_t instance_before(const Member& m) const {
    for (uint32_t row = m.row; row-- > 0;) {
      const uint32_t index = matches_.instance_of_row[m.rank][row];
      if (index != kNoInstance && replay_.transfer_ns[index] >= 0) return index;
      if (m.row - row > 16) break;
    }
    return kNoInstance;
  }

  // Computing beside a collective is counted against its wait first.
  void expose() {
    for (uint32_t r = 0; r < intake_.ranks.size(); ++r) {
      const RankRows& rank = intake_.ranks[r];
      RankWaits& out = out_.ranks[r];
      for (uint32_t i = 0; i < rank.rows.size(); ++i) {
        const CollectiveRow& row = rank.rows[i];
        const int64_t length = row.end_ns - row.start_ns;
        out.collective_ns += length;
        out.overlapped_ns += row.overlapped_ns;
        if (row.step < 0 || !is_judged(rank.part.steps, static_cast<size_t>(row.step))) continue;
        const int64_t exposed = length - row.overlapped_ns;
        const uint32_t index = matches_.instance_of_row[r][i];
        if (index == kNoInstance || replay_.transfer_ns[index] < 0) {
          out.exposed_unmatched_ns += exposed;
          continue;
        }
        const int64_t wait =
            std::clamp<int64_t>(last_arrival_[index] - clocks_.aligned(rank.domain, row.start_ns), 0, length);
        const int64_t exposed_wait = std::clamp<int64_t>(wait - row.overlapped_ns, 0, exposed);
        out.exposed_wait_ns += exposed_wait;
        out.exposed_transfer_ns += exposed - exposed_wait;
      }
    }
  }

  const Intake& intake_;
  Matches& matches_;
  const Clocks& clocks_;
  const std::vector<uint32_t>& kinds_;
  JobReplay& replay_;
  Waits out_;
  std::vector<int64_t> last_arrival_;
  std::vector<uint32_t> origin_;  // by instance: the rank that made it late
  std::vector<int64_t> values_, works_;
};

}  // namespace

bool is_judged(const PartSteps& steps, size_t step) {
  return steps.warm_up[step] == 0 ||
         std::all_of(steps.warm_up.begin(), steps.warm_up.end(), [](int64_t w) { return w != 0; });
}

Waits find_waits(const Intake& intake, Matches& matches, const Clocks& clocks,
                 const std::vector<uint32_t>& kind_of_group, JobReplay& replay) {
  return WaitFinder(intake, matches, clocks, kind_of_group, replay).run();
}

}  // namespace firelane::ranks
