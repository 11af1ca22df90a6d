#include "ranks/reduce/what_if.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "base/parallel.h"
#include "ranks/reduce/pipeline.h"

namespace firelane::ranks {

namespace {

using Change = JobReplay::Change;
using Work = JobReplay::Work;

constexpr size_t kMostMembers = 250'000;   // of one replay
constexpr size_t kMostVisits = 4'000'000;  // of all replays for S_w
constexpr size_t kLeastRanksTried = 8;
constexpr int64_t kSmallBytes = 64 << 10;  // such a collective takes as long as its latency

class WhatIfs {
 public:
  WhatIfs(const JobReplay& replay, const Waits& waits, Reduction& out) : replay_(replay), waits_(waits), out_(out) {
    for (const uint32_t index : replay.order) {
      const Instance& instance = replay.matches.instances[index];
      if (members_ + (instance.end - instance.begin) > kMostMembers && instances_ > 0) break;
      members_ += instance.end - instance.begin;
      ++instances_;
    }
    for (const RankResult& rank : out.by_rank) steps_ = std::max(steps_, rank.steps);
    if (instances_ < replay.order.size()) {
      steps_ = std::max<int64_t>(1, steps_ * static_cast<int64_t>(instances_) /
                                        static_cast<int64_t>(std::max<size_t>(1, replay.order.size())));
    }
  }

  void run() {
    recorded_ns_ = replayed({});
    if (recorded_ns_ <= 0) return;
    const std::vector<int64_t> faster = with_twice_the_bandwidth();
    auto overlap = later({.overlap = true});
    auto bandwidth = later({.transfer_ns = faster});
    add("perfect-overlap", "all collectives overlapped with compute, as far as possible", overlap.get());
    add("twice-the-bandwidth", "links twice as fast, with the same latency", bandwidth.get());
    for (const Straggler& s : out_.stragglers) {
      const std::string who = s.whole_host ? "the ranks of " + s.host : "rank " + std::to_string(s.rank);
      out_.what_ifs.push_back({"without-straggler", who + " as fast as the others", s.gain_ns, s.gain_percent});
    }
    if (out_.scaling.ideal_ns > 0 && out_.scaling.lost_share > 0) {
      out_.what_ifs.push_back(
          {"even-work", "the same work on all ranks of a group",
           static_cast<int64_t>((out_.scaling.replayed_ns - out_.scaling.ideal_ns) / static_cast<double>(all_steps())),
           100 * out_.scaling.lost_share});
    }
    if (out_.pipeline.stages.size() > 1) pipeline();
    std::stable_sort(out_.what_ifs.begin(), out_.what_ifs.end(),
                     [](const WhatIf& a, const WhatIf& b) { return a.gain_percent > b.gain_percent; });
    types();
    ranks();
  }

 private:
  double replayed(Change change) const {
    change.instances = instances_;
    return replay_.run(change);
  }
  std::future<double> later(Change change) const {
    return std::async(std::launch::async, [this, change = std::move(change)] { return replayed(change); });
  }
  int64_t all_steps() const {
    int64_t steps = 1;
    for (const RankResult& rank : out_.by_rank) steps = std::max(steps, rank.steps);
    return steps;
  }
  std::vector<Work> everybody(Work work) const { return std::vector<Work>(replay_.intake.ranks.size(), work); }

  void add(const char* id, std::string what, double job_ns) {
    const double gain = std::max(0.0, recorded_ns_ - job_ns);
    out_.what_ifs.push_back({id, std::move(what),
                             static_cast<int64_t>(gain / static_cast<double>(std::max<int64_t>(1, steps_))),
                             100 * gain / recorded_ns_});
  }

  Collective op_of(uint32_t instance) const {
    return replay_.intake.signatures[replay_.matches.instances[instance].signature].op;
  }
  size_t ranks_of(uint32_t instance) const {
    const Instance& each = replay_.matches.instances[instance];
    return each.end - each.begin;
  }

  // Small collectives of the same operation over as many ranks tell the latency, which bandwidth does not change.
  std::vector<int64_t> with_twice_the_bandwidth() const {
    std::map<std::pair<Collective, int64_t>, int64_t> latency;
    for (const auto& [key, kind] : waits_.kinds) {
      const auto& [signature, bytes, ranks, group_kind] = key;
      if (bytes <= 0 || bytes > kSmallBytes || kind.transfer_ns.empty()) continue;
      std::vector<int64_t> sorted = kind.transfer_ns;
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
      std::nth_element(sorted.begin(), middle, sorted.end());
      const auto [at, is_new] = latency.try_emplace({replay_.intake.signatures[signature].op, ranks}, *middle);
      if (!is_new) at->second = std::min(at->second, *middle);
    }
    std::vector<int64_t> out = replay_.transfer_ns;
    for (const uint32_t index : replay_.order) {
      if (op_of(index) == Collective::kBarrier) continue;
      const auto known = latency.find({op_of(index), static_cast<int64_t>(ranks_of(index))});
      const int64_t floor = std::min(out[index], known == latency.end() ? 0 : known->second);
      out[index] = floor + (out[index] - floor) / 2;
    }
    return out;
  }

  // By how much the work of each rank must change for all stages to have the same.
  std::vector<double> even_stages(const std::vector<int32_t>& stages) const {
    double mean = 0;
    for (const PipelineStage& stage : out_.pipeline.stages) {
      mean += static_cast<double>(stage.work_ns) / static_cast<double>(out_.pipeline.stages.size());
    }
    std::vector<double> out(stages.size(), 1);
    for (size_t r = 0; r < stages.size(); ++r) {
      if (stages[r] < 0) continue;
      const auto own = static_cast<double>(out_.pipeline.stages[static_cast<size_t>(stages[r])].work_ns);
      if (own > 0) out[r] = mean / own;
    }
    return out;
  }

  void pipeline() {
    Pipeline& found = out_.pipeline;
    const std::vector<int32_t> stages = stage_of_rank(replay_.intake, found);
    const auto heaviest =
        std::max_element(found.stages.begin(), found.stages.end(),
                         [](const PipelineStage& a, const PipelineStage& b) { return a.work_ns < b.work_ns; });
    const auto number = static_cast<int32_t>(heaviest - found.stages.begin());
    const auto last = static_cast<int32_t>(found.stages.size()) - 1;
    std::vector<double> halved(stages.size(), 1);
    std::vector<double> even = even_stages(stages);
    std::vector<double> only_last = even;
    for (size_t r = 0; r < stages.size(); ++r) {
      if (stages[r] == number) halved[r] = 0.5;
      if (stages[r] != last) only_last[r] = 1;
    }
    auto split = later({.work_factor = std::move(halved)});
    auto same = later({.work_factor = even});
    auto all_even = later({.own = everybody(Work::kMean), .work_factor = std::move(even)});
    const double last_even = replayed({.work_factor = std::move(only_last)});
    // Each micro-batch passes through one stage more on its way: the first and the last of a step show.
    std::vector<int64_t> hops;
    for (size_t i = 0; i < instances_; ++i) {
      if (op_of(replay_.order[i]) == Collective::kSend) hops.push_back(replay_.transfer_ns[replay_.order[i]]);
    }
    double hop = 0;
    if (!hops.empty()) {
      const auto middle = hops.begin() + static_cast<std::ptrdiff_t>(hops.size() / 2);
      std::nth_element(hops.begin(), middle, hops.end());
      hop = 2 * static_cast<double>(*middle) * static_cast<double>(steps_);
    }
    add("split-stage", "pipeline stage " + std::to_string(number) + ", the one with the most work, split in two",
        split.get() + hop);
    add("even-stages", "the same work on all pipeline stages", same.get());
    const double lost = recorded_ns_ - all_even.get();
    if (lost > 0.001 * recorded_ns_) {
      found.last_stage_share = std::clamp((recorded_ns_ - last_even) / lost, 0.0, 1.0);
    }
  }

  // Transfers as long as the median of their kind: operation, size, number of ranks.
  std::vector<int64_t> even_transfers() const {
    std::map<std::tuple<uint32_t, int64_t, size_t>, std::vector<uint32_t>> kinds;
    for (size_t i = 0; i < instances_; ++i) {
      const uint32_t index = replay_.order[i];
      const uint32_t signature = replay_.matches.instances[index].signature;
      kinds[{signature, op_of(index) == Collective::kAllToAll ? 0 : waits_.meetings[index].most_bytes, ranks_of(index)}]
          .push_back(index);
    }
    std::vector<int64_t> out = replay_.transfer_ns;
    for (auto& [key, all] : kinds) {
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
      std::nth_element(all.begin(), middle, all.end(), [&](uint32_t a, uint32_t b) {
        return replay_.transfer_ns[a] != replay_.transfer_ns[b] ? replay_.transfer_ns[a] < replay_.transfer_ns[b]
                                                                : a < b;
      });
      for (const uint32_t index : all) out[index] = replay_.transfer_ns[*middle];
    }
    return out;
  }

  void types() {
    const std::vector<int64_t> even = even_transfers();
    const double ideal = replayed({.own = everybody(Work::kMean), .transfer_ns = even});
    if (ideal <= 0) return;
    std::set<Collective> ops;
    for (size_t i = 0; i < instances_; ++i) ops.insert(op_of(replay_.order[i]));
    const std::vector<Collective> all(ops.begin(), ops.end());
    std::vector<double> times(all.size() + 1);
    parallel_ranges(
        times.size(), std::thread::hardware_concurrency(),
        [&](size_t begin, size_t end) {
          for (size_t t = begin; t < end; ++t) {
            if (t == all.size()) {
              times[t] = replayed({.transfer_ns = even});
              continue;
            }
            std::vector<int64_t> transfers = even;
            for (size_t i = 0; i < instances_; ++i) {
              const uint32_t index = replay_.order[i];
              if (op_of(index) == all[t]) transfers[index] = replay_.transfer_ns[index];
            }
            times[t] = replayed({.own = everybody(Work::kMean), .transfer_ns = transfers});
          }
        },
        1);
    for (size_t t = 0; t < times.size(); ++t) {
      out_.types.push_back({t == all.size() ? "computing" : std::string(name_of(all[t])), times[t] / ideal});
    }
    std::stable_sort(out_.types.begin(), out_.types.end(),
                     [](const TypeSlowdown& a, const TypeSlowdown& b) { return a.slowdown > b.slowdown; });
  }

  void ranks() {
    std::vector<uint32_t> worst(replay_.intake.ranks.size());
    for (uint32_t r = 0; r < worst.size(); ++r) worst[r] = r;
    std::stable_sort(worst.begin(), worst.end(),
                     [&](uint32_t a, uint32_t b) { return waits_.ranks[a].late_ns > waits_.ranks[b].late_ns; });
    const size_t tried = std::max(kLeastRanksTried, kMostVisits / std::max<size_t>(1, members_));
    if (worst.size() > tried) worst.resize(tried);
    const double ideal = replayed({.own = everybody(Work::kMean)});
    if (ideal <= 0) return;
    parallel_ranges(
        worst.size(), std::thread::hardware_concurrency(),
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            std::vector<Work> own = everybody(Work::kMean);
            own[worst[i]] = Work::kRecorded;
            out_.by_rank[worst[i]].slowdown = replayed({.own = std::move(own)}) / ideal;
          }
        },
        1);
  }

  const JobReplay& replay_;
  const Waits& waits_;
  Reduction& out_;
  size_t instances_ = 0;  // of the order that are replayed
  size_t members_ = 0;
  int64_t steps_ = 1;  // that these take
  double recorded_ns_ = 0;
};

}  // namespace

void add_what_ifs(const JobReplay& replay, const Waits& waits, Reduction& out) { WhatIfs(replay, waits, out).run(); }

}  // namespace firelane::ranks
