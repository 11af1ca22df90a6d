// Finds out which ranks share a machine where traces do not say so: see join_machines() in islands.h.
#include <algorithm>
#include <map>
#include <thread>

#include "base/parallel.h"
#include "ranks/reduce/chance.h"
#include "ranks/reduce/islands.h"
#include "ranks/reduce/shift.h"

namespace firelane::ranks {

namespace {

// What the pairs of neighbours say together.
struct Verdict {
  double log_chance = 0;  // that they agree although they do not share machines
  bool is_denied = false;
  EndNoise usual;
};

class MachineFinder {
 public:
  explicit MachineFinder(Islands& islands) : islands_(islands) {
    for (const RankRows& rank : islands.intake().ranks) {
      world_ = std::max({world_, rank.part.world_size, rank.part.rank + 1});
      if (!rank.part.host.empty() || rank.part.rank < 0 || islands.of_domain(rank.domain) == UINT32_MAX) continue;
      domain_of_rank_[rank.part.rank] = rank.domain;
    }
  }

  void run() {
    if (!islands_.intake().has_unix_times) return;  // every trace begins at its own zero
    int64_t ranks = 1;                              // of a machine, at least
    while (multiply_if_surely(ranks, 2) || multiply_if_surely(ranks, 3)) {
    }
  }

 private:
  struct Pair {
    uint32_t a = 0;
    uint32_t b = 0;
    SameClock same;
  };

  // The largest island that ranks [first, first + count) are in; UINT32_MAX: none of them is here.
  uint32_t island_of(int64_t first, int64_t count) const {
    uint32_t out = UINT32_MAX;
    for (auto at = domain_of_rank_.lower_bound(first); at != domain_of_rank_.end() && at->first < first + count; ++at) {
      const uint32_t island = islands_.of_domain(at->second);
      if (out == UINT32_MAX || islands_.all()[island].size > islands_.all()[out].size) out = island;
    }
    return out;
  }

  // Machines have at least `ranks` ranks: joins what lies beside each other and multiplies them if that is certain. If
  // pairs of neighbours alone do not prove it, larger machines may.
  bool multiply_if_surely(int64_t& ranks, int64_t times) {
    constexpr double kLogUnlikelyMachine = -13.8;  // 1e-6: a job has one such question, not one for each clock
    constexpr int64_t kMostTimes = 16;
    for (int64_t within = times; within <= kMostTimes && world_ % (ranks * within) == 0; within *= 2) {
      std::vector<Pair> pairs = neighbours(ranks, within);
      const Verdict verdict = judge(pairs);
      if (verdict.is_denied) return false;
      if (verdict.log_chance > kLogUnlikelyMachine) continue;
      if (within > times) {
        pairs = neighbours(ranks, times);
        judge(pairs);
      }
      join(pairs, verdict.usual);
      ranks *= times;
      return true;
    }
    return false;
  }

  // Machines of this many ranks that lie beside each other, of each `within`.
  std::vector<Pair> neighbours(int64_t ranks, int64_t within) const {
    std::vector<Pair> out;
    for (int64_t first = 0; first < world_; first += ranks * within) {
      uint32_t before = UINT32_MAX;
      for (int64_t i = 0; i < within; ++i) {
        const uint32_t own = island_of(first + i * ranks, ranks);
        if (own == UINT32_MAX) continue;
        if (before != UINT32_MAX && before != own) out.push_back({before, own, {}});
        before = own;
      }
    }
    return out;
  }

  Verdict judge(std::vector<Pair>& pairs) const {
    const auto try_all = [&](double usual_ns) {
      parallel_each(pairs.size(), std::max(1u, std::thread::hardware_concurrency()), [&](size_t i) {
        Pair& each = pairs[i];
        each.same = try_same_clock(islands_.intake(), islands_.all()[each.a], islands_.all()[each.b], usual_ns);
      });
    };
    try_all(0);
    std::vector<EndNoise> noise;
    for (const Pair& each : pairs) {
      if (each.same.noise.places_ns > 0) noise.push_back(each.same.noise);
    }
    if (noise.empty()) return {.is_denied = true};
    std::ranges::sort(noise, {}, &EndNoise::places_ns);
    Verdict out{.usual = noise[noise.size() / 2]};
    try_all(out.usual.places_ns);
    double seen = 0;
    double against = 0;
    for (const Pair& each : pairs) {
      seen += each.same.is_seen ? 1 : 0;
      against += is_against(each) ? 1 : 0;
      out.log_chance += each.same.may_be ? each.same.log_chance : 0;
    }
    // With many, one fits badly by chance.
    constexpr double kBadly = 0.01;
    constexpr double kLogUnusual = -6.9;
    out.is_denied = log_chance_of_hits(against, seen, kBadly) < kLogUnusual;
    return out;
  }

  static bool is_against(const Pair& pair) { return pair.same.is_seen && !pair.same.may_be; }

  void join(std::vector<Pair>& pairs, const EndNoise& usual) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Pair each = pairs[i];
      if (is_against(each)) continue;
      const bool few = each.same.noise.places_ns < usual.places_ns;
      islands_.join(each.a, each.b, {}, few ? usual : each.same.noise);
      for (size_t later = i + 1; later < pairs.size(); ++later) {
        if (pairs[later].a == each.b) pairs[later].a = each.a;
      }
    }
  }

  Islands& islands_;
  std::map<int64_t, uint32_t> domain_of_rank_;
  int64_t world_ = 0;
};

}  // namespace

void join_machines(Islands& islands) { MachineFinder(islands).run(); }

}  // namespace firelane::ranks
