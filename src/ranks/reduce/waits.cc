#include "ranks/reduce/waits.h"

#include <algorithm>
#include <span>
#include <thread>

#include "base/parallel.h"

namespace firelane::ranks {

namespace {

// Kernels start and end some microseconds beside what clocks say.
constexpr int64_t kClockSlackNs = 5'000;

int64_t lower_median(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  constexpr size_t kFew = 16;  // for which the simplest sort is the fastest
  if (values.size() <= kFew) {
    for (size_t i = 1; i < values.size(); ++i) {
      const int64_t value = values[i];
      size_t at = i;
      for (; at > 0 && values[at - 1] > value; --at) values[at] = values[at - 1];
      values[at] = value;
    }
    return *middle;
  }
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
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    out_.ranks.resize(intake_.ranks.size());
    out_.group_wait_ns.assign(intake_.groups.size(), 0);
    out_.group_transfer_ns.assign(intake_.groups.size(), 0);
    for (size_t r = 0; r < intake_.ranks.size(); ++r) {
      out_.ranks[r].late_by_step.assign(intake_.ranks[r].part.steps.size() + 1, 0);
      out_.ranks[r].wait_by_step.assign(intake_.ranks[r].part.steps.size() + 1, 0);
    }
    replay_.transfer_ns.assign(count, -1);
    replay_.mean_work_ns.assign(count, 0);
    replay_.median_work_ns.assign(count, 0);
    replay_.work.resize(matches_.members.size());
    meetings_.assign(count, {});
    origin_.assign(count, UINT32_MAX);
    parallel_ranges(count, threads, [&](size_t begin, size_t end) {
      Scratch scratch;
      for (size_t i = begin; i < end; ++i) {
        if (waits_here(matches_.instances[i])) look_at(static_cast<uint32_t>(i), scratch);
      }
    });
    std::vector<std::pair<int64_t, uint32_t>> arrivals;  // in order within each group: few long runs
    arrivals.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (meetings_[i].contradicts) refuse(i);
      if (replay_.transfer_ns[i] >= 0) arrivals.emplace_back(meetings_[i].last_arrival_ns, i);
    }
    run_both(
        threads > 1,
        [&] { std::sort(arrivals.begin(), arrivals.begin() + static_cast<std::ptrdiff_t>(arrivals.size() / 2)); },
        [&] { std::sort(arrivals.begin() + static_cast<std::ptrdiff_t>(arrivals.size() / 2), arrivals.end()); });
    std::inplace_merge(arrivals.begin(), arrivals.begin() + static_cast<std::ptrdiff_t>(arrivals.size() / 2),
                       arrivals.end());
    replay_.order.clear();
    replay_.order.reserve(arrivals.size());
    for (const auto& [at_ns, index] : arrivals) replay_.order.push_back(index);
    if (!replay_.order.empty()) {
      const auto end = [&](uint32_t i) {
        return static_cast<double>(meetings_[i].last_arrival_ns + replay_.transfer_ns[i]);
      };
      out_.recorded_ns = end(replay_.order.back()) - end(replay_.order.front());
    }
    // One after the other, since blame is passed on; beside it ranks, the next one by whoever is free.
    parallel_each(intake_.ranks.size() + 1, threads, [&](size_t i) {
      if (i == 0) {
        charge_all();
      } else {
        expose(static_cast<uint32_t>(i - 1));
      }
    });
    out_.group_exposed_ns.assign(intake_.groups.size(), 0);
    for (const RankWaits& rank : out_.ranks) {
      for (const auto& [group, ns] : rank.exposed_by_group) out_.group_exposed_ns[group] += ns;
    }
    out_.meetings = std::move(meetings_);
    return std::move(out_);
  }

 private:
  struct Scratch {
    std::vector<int64_t> arrivals, ends, works, sorted;
  };

  bool waits_here(const Instance& instance) const {
    return synchronizes(intake_.signatures[instance.signature].op) || intake_.groups[instance.group].point_to_point;
  }
  std::span<const Member> members(const Instance& instance) const {
    return {matches_.members.data() + instance.begin, instance.end - instance.begin};
  }

  void look_at(uint32_t index, Scratch& scratch) {
    const Instance& instance = matches_.instances[index];
    const auto all = members(instance);
    Meeting& out = meetings_[index];
    scratch.arrivals.clear();
    scratch.ends.clear();
    scratch.works.clear();
    double bound = 0;
    double mean = 0;
    size_t latest = 0;
    int64_t first_end = INT64_MAX;
    for (const Member& m : all) {
      fetch_ahead(intake_, matches_, static_cast<size_t>(&m - matches_.members.data()));
      const RankRows& rank = intake_.ranks[m.rank];
      const DomainClock& clock = clocks_.domains[rank.domain];
      if (!clock.known) return;  // no common time: matched, but nobody can say who waited
      const CollectiveRow& row = rank.rows[m.row];
      bound = std::max(bound, clock.bound_ns);
      scratch.arrivals.push_back(clocks_.aligned(rank.domain, row.start_ns));
      scratch.ends.push_back(clocks_.aligned(rank.domain, row.end_ns));
      const MemberWork work = work_before(rank.rows, m.row);
      replay_.work[static_cast<size_t>(&m - matches_.members.data())] = work;
      scratch.works.push_back(work.work_ns);
      mean += static_cast<double>(scratch.works.back());
      if (scratch.arrivals.back() > scratch.arrivals[latest]) latest = scratch.arrivals.size() - 1;
      first_end = std::min(first_end, scratch.ends.back());
      out.bytes += row.bytes;
      out.most_bytes = std::max(out.most_bytes, row.bytes);
    }
    const int64_t last = scratch.arrivals[latest];
    const bool both_ways = synchronizes(intake_.signatures[instance.signature].op);
    out.contradicts = both_ways && static_cast<double>(last - first_end) > 2 * bound + kClockSlackNs;
    if (out.contradicts) return;
    out.last_arrival_ns = last;
    out.latest = all[latest];
    for (size_t i = 0; i < all.size(); ++i) {
      out.wait_sum_ns +=
          std::max<int64_t>(0, std::min<int64_t>(last - scratch.arrivals[i], scratch.ends[i] - scratch.arrivals[i]));
    }
    const int64_t own_work = scratch.works[latest];
    const int64_t median_work = lower_median(scratch.works);
    // The two sides of a pair do different work: there is no mean of it.
    const bool alike = !intake_.groups[instance.group].point_to_point;
    replay_.mean_work_ns[index] = alike ? static_cast<int64_t>(mean / static_cast<double>(all.size())) : -1;
    replay_.median_work_ns[index] = alike ? median_work : -1;
    replay_.transfer_ns[index] = std::max<int64_t>(0, lower_median(scratch.ends) - last);
    out.lateness_ns = last - lower_median(scratch.arrivals);
    out.own_ns = std::max<int64_t>(0, std::min<int64_t>(own_work - median_work, out.lateness_ns));
  }

  void refuse(uint32_t index) {
    const Instance& instance = matches_.instances[index];
    GroupMatch& group = matches_.groups[instance.group];
    const auto rows = static_cast<int64_t>(instance.end - instance.begin);
    group.refused[static_cast<size_t>(Refusal::kCausality)] += rows;
    group.matched_rows -= rows;
    --group.instances;
    for (const Member& m : members(instance)) matches_.instance_of_row[m.rank][m.row] = kNoInstance;
  }

  void charge_all() {
    constexpr size_t kAhead = 8;
    for (size_t i = 0; i < replay_.order.size(); ++i) {
      if (i + kAhead < replay_.order.size()) {
        const uint32_t next = replay_.order[i + kAhead];
        __builtin_prefetch(&meetings_[next]);
        __builtin_prefetch(&meetings_[next].latest);
        __builtin_prefetch(&matches_.instances[next]);
      }
      charge(replay_.order[i]);
    }
  }

  void charge(uint32_t index) {
    const Instance& instance = matches_.instances[index];
    const Meeting& meeting = meetings_[index];
    const auto count = static_cast<int64_t>(instance.end - instance.begin);
    const Collective op = intake_.signatures[instance.signature].op;
    out_.group_wait_ns[instance.group] += meeting.wait_sum_ns;
    out_.group_transfer_ns[instance.group] += count * replay_.transfer_ns[index];
    // Sizes that vary from call to call (routing of experts) are shown together.
    const int64_t size = op == Collective::kAllToAll ? 0 : meeting.most_bytes;
    const std::tuple key{instance.signature, size, count, kinds_[instance.group]};
    if (last_kind_ == nullptr || key != last_key_) {
      last_kind_ = &out_.kinds[key];
      last_key_ = key;
    }
    KindWaits& kind = *last_kind_;
    kind.wait_ns.push_back(meeting.wait_sum_ns / count);
    kind.transfer_ns.push_back(replay_.transfer_ns[index]);
    if (meeting.bytes > 0 && op == Collective::kAllToAll) {
      kind.imbalance_sum +=
          static_cast<double>(meeting.most_bytes) * static_cast<double>(count) / static_cast<double>(meeting.bytes);
      ++kind.imbalance_count;
    }

    const Member& latest = meeting.latest;
    RankWaits& rank = out_.ranks[latest.rank];
    ++rank.last_count;
    const int64_t own = meeting.own_ns;
    const int64_t inherited = meeting.lateness_ns - own;
    const uint32_t before = instance_before(latest);
    const uint32_t older = before == kNoInstance ? UINT32_MAX : origin_[before];
    origin_[index] = own >= inherited || older == UINT32_MAX ? latest.rank : older;
    rank.late_ns += own;
    rank.late_by_group[instance.group] += own;
    const CollectiveRow& row = intake_.ranks[latest.rank].rows[latest.row];
    rank.late_by_step[row.step < 0 ? rank.late_by_step.size() - 1 : static_cast<size_t>(row.step)] += own;
    if (own > rank.latest_ns) {
      rank.latest_ns = own;
      const Part& part = intake_.ranks[latest.rank].part;
      rank.latest_start_ns = row.start_ns - (intake_.has_unix_times ? part.unix_start_ns - intake_.base_unix_ns : 0);
    }
    if (older != UINT32_MAX && older != latest.rank) rank.passed_on_ns += inherited;
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
  void expose(uint32_t r) {
    const RankRows& rank = intake_.ranks[r];
    RankWaits& out = out_.ranks[r];
    uint32_t group = UINT32_MAX;
    int64_t* of_group = nullptr;
    for (uint32_t i = 0; i < rank.rows.size(); ++i) {
      const CollectiveRow& row = rank.rows[i];
      const int64_t length = row.end_ns - row.start_ns;
      const int64_t exposed = length - row.overlapped_ns;
      const uint32_t index = matches_.instance_of_row[r][i];
      const bool judged = row.step >= 0 && is_judged(rank.part.steps, static_cast<size_t>(row.step));
      out.collective_ns += length;
      out.overlapped_ns += row.overlapped_ns;
      if (judged && row.group != UINT32_MAX) {
        if (row.group != group) of_group = &out.exposed_by_group[group = row.group];
        *of_group += exposed;
      }
      if (index == kNoInstance || replay_.transfer_ns[index] < 0) {
        if (judged) out.exposed_unmatched_ns += exposed;
        continue;
      }
      const int64_t wait = std::max<int64_t>(
          0, std::min<int64_t>(meetings_[index].last_arrival_ns - clocks_.aligned(rank.domain, row.start_ns), length));
      out.waited_ns += wait;
      out.wait_by_step[row.step < 0 ? out.wait_by_step.size() - 1 : static_cast<size_t>(row.step)] += wait;
      if (!judged) continue;
      const int64_t exposed_wait = std::max<int64_t>(0, std::min<int64_t>(wait - row.overlapped_ns, exposed));
      out.exposed_wait_ns += exposed_wait;
      out.exposed_transfer_ns += exposed - exposed_wait;
    }
  }

  const Intake& intake_;
  Matches& matches_;
  const Clocks& clocks_;
  const std::vector<uint32_t>& kinds_;
  JobReplay& replay_;
  Waits out_;
  KindWaits* last_kind_ = nullptr;  // of the map, whose nodes stay where they are
  std::tuple<uint32_t, int64_t, int64_t, uint32_t> last_key_;
  std::vector<Meeting> meetings_;
  std::vector<uint32_t> origin_;  // by instance: the rank that made it late
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
