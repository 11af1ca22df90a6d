#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "ranks/reduce/axis.h"

namespace firelane::ranks {

namespace {

constexpr double kMostOffsetNs = 50'000'000;  // clocks of machines that NTP keeps
constexpr double kMostAxisDrift = 200e-6;
constexpr size_t kAnchors = 8;
constexpr size_t kMostShifts = 1024;
constexpr double kMostCost = 2;  // of the shift that is taken
constexpr double kMissed = 8;    // what a row without a collective counts as, in deviations

// How well a difference of clocks explains the rows of a machine.
struct Shift {
  double difference_ns = 0;  // in the middle of the rows
  double drift = 0;
  double cost = 0;         // deviations of ends from the axis, in those of matched ends: 1 is as good as can be
  size_t collectives = 0;  // that it was judged by
};

class ClockFinder {
 public:
  explicit ClockFinder(Axis& axis) : axis_(axis) {}

  bool find(uint32_t domain, std::span<const OpenRow> rows) {
    const std::vector<double> tried = shifts(rows);
    if (tried.empty() || tried.size() > kMostShifts) return false;
    // Of many shifts, those rows in the middle: enough to tell one from another.
    constexpr size_t kMostJudgements = 500'000;
    if (const size_t most = kMostJudgements / tried.size(); rows.size() > most) {
      rows = rows.subspan((rows.size() - most) / 2, most);
    }
    if (tried.size() * rows.size() > axis_.rows_left) return false;
    axis_.rows_left -= tried.size() * rows.size();
    const double middle = (rows.front().end_ns + rows.back().end_ns) / 2;
    std::vector<Shift> judged;
    for (const double difference : tried) judged.push_back(judge(rows, difference, middle));
    const Shift* one = the_only_one(judged, rows);
    if (one == nullptr) one = clock_of_neighbours(judged, domain, middle);
    if (one == nullptr) return false;
    DomainClock& clock = axis_.clocks.domains[domain];
    clock.known = true;
    clock.consistent = true;
    clock.drift = one->drift;
    clock.offset_ns = one->difference_ns + one->drift * (static_cast<double>(clock.at_ns) - middle);
    return true;
  }

 private:
  bool is_possible(double difference_ns) const {
    return !axis_.intake.has_unix_times || std::abs(difference_ns) <= kMostOffsetNs;
  }

  // Differences of clocks that put one of some rows onto a collective of its kind.
  std::vector<double> shifts(std::span<const OpenRow> rows) const {
    std::vector<size_t> rarest(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) rarest[i] = i;
    std::stable_sort(rarest.begin(), rarest.end(), [&](size_t a, size_t b) {
      return axis_.places[rows[a].open].size() < axis_.places[rows[b].open].size();
    });
    // Rows of the group with the fewest collectives, spread over the recording.
    const size_t fewest = axis_.places[rows[rarest[0]].open].size();
    size_t count = 0;
    while (count < rarest.size() && axis_.places[rows[rarest[count]].open].size() <= 2 * fewest) ++count;
    std::vector<double> out;
    for (size_t a = 0; a < std::min(kAnchors, count); ++a) {
      const OpenRow& anchor = rows[rarest[count <= kAnchors ? a : a * (count - 1) / (kAnchors - 1)]];
      for (const Place& place : axis_.places[anchor.open]) {
        const double difference = anchor.end_ns - place.end_ns;
        if (axis_.compatible(place.signature, anchor.signature)) out.push_back(difference);
      }
    }
    std::sort(out.begin(), out.end());
    // Found from several anchors: once.
    const double same = 4 * axis_.reach_ns();
    std::vector<double> kept;
    for (size_t i = 0; i < out.size();) {
      size_t end = i + 1;
      while (end < out.size() && out[end] - out[end - 1] < same && out[end] - out[i] < 2 * same) ++end;
      kept.push_back(out[(i + end - 1) / 2]);
      i = end;
    }
    // Those that clocks cannot have show how shifts look that are wrong. Some of them.
    if (kept.size() > kMostShifts) std::erase_if(kept, [&](double each) { return !is_possible(each); });
    return kept;
  }

  Shift judge(std::span<const OpenRow> rows, double difference_ns, double middle_ns) const {
    struct Sum {
      double off = 0, x = 0;
      uint32_t rows = 0, places = 0;
    };
    Shift out{.difference_ns = difference_ns};
    const double wide = 12 * axis_.reach_ns();
    // A machine's rows of one collective are one observation: its ranks have the same clock. Twice: around the shift
    // that an anchor gave, then around their own middle.
    std::map<std::pair<uint32_t, uint32_t>, Sum> sums;
    size_t missed = 0;
    for (int round = 0; round < 2; ++round) {
      sums.clear();
      missed = 0;
      for (const OpenRow& row : rows) {
        const std::vector<Place>& places = axis_.places[row.open];
        const double end = row.end_ns - out.difference_ns;
        if (end < places.front().end_ns - axis_.reach_ns() || end > places.back().end_ns + axis_.reach_ns()) continue;
        const Axis::Nearest near = axis_.nearest(places, row.signature, end, wide);
        if (near.place == nullptr) {
          ++missed;
          continue;
        }
        Sum& sum = sums[{row.open, near.place->found}];
        sum.off += end - near.place->end_ns;
        sum.x += row.end_ns - middle_ns;
        sum.places = near.place->members;
        ++sum.rows;
      }
      if (round > 0 || sums.empty()) continue;
      std::vector<double> offs;
      for (const auto& [key, sum] : sums) offs.push_back(sum.off / sum.rows);
      const auto at = offs.begin() + static_cast<std::ptrdiff_t>(offs.size() / 2);
      std::nth_element(offs.begin(), at, offs.end());
      out.difference_ns += *at;
    }
    // A line through what is left, its drift as small as the ends allow: crystals are within 50 ppm.
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    const auto weight_of = [&](const Sum& sum) { return 1 / (1.0 / sum.rows + 1.0 / sum.places); };
    for (const auto& [key, sum] : sums) {
      const double weight = weight_of(sum);
      const double x = sum.x / sum.rows;
      const double y = sum.off / sum.rows;
      w += weight, wx += weight * x, wy += weight * y, wxx += weight * x * x, wxy += weight * x * y;
    }
    if (w > 0) {
      constexpr double kUsualDrift = 50e-6;
      const double prior = axis_.noise_ns * axis_.noise_ns / (kUsualDrift * kUsualDrift);
      const double determinant = w * (wxx + prior) - wx * wx;
      out.drift = std::clamp((w * wxy - wx * wy) / determinant, -kMostAxisDrift, kMostAxisDrift);
      const double a = (wy - out.drift * wx) / w;
      std::vector<Observation> seen;
      for (const auto& [key, sum] : sums) {
        seen.push_back({sum.x / sum.rows, sum.off / sum.rows - a - out.drift * sum.x / sum.rows, weight_of(sum)});
      }
      std::sort(seen.begin(), seen.end(), [](const Observation& p, const Observation& q) { return p.x < q.x; });
      out.difference_ns += a;
      out.collectives = seen.size();
      // Missed rows of several ranks may be of one collective.
      const double missing = static_cast<double>(missed) / static_cast<double>(std::max<size_t>(1, ranks_in(rows)));
      out.cost = std::max(cost_of(seen, missing), cost_of(together(seen), missing));
    }
    return out;
  }

  // How far a machine's end lies from the axis.
  struct Observation {
    double x = 0;
    double off = 0;
    double weight = 0;
  };

  double cost_of(const std::vector<Observation>& seen, double missing) const {
    double squares = 0;
    for (const Observation& each : seen) {
      const double deviations = std::min(kMissed, std::abs(each.off) / axis_.noise_ns * std::sqrt(each.weight));
      squares += deviations * deviations;
    }
    const double freedom = std::max(1.0, static_cast<double>(seen.size()) - 1);
    return std::sqrt((squares + missing * kMissed * kMissed) / (freedom + missing));
  }

  // Collectives that follow each other closely are one observation: where a step took longer, all of them lie off.
  static std::vector<Observation> together(const std::vector<Observation>& seen) {
    double longest = 0;
    for (size_t i = 1; i < seen.size(); ++i) longest = std::max(longest, seen[i].x - seen[i - 1].x);
    std::vector<Observation> out;
    double before = -INFINITY;
    for (const Observation& each : seen) {
      if (each.x - before > 0.5 * longest) out.emplace_back();
      before = each.x;
      Observation& sum = out.back();
      sum.off = (sum.off * sum.weight + each.off * each.weight) / (sum.weight + each.weight);
      sum.weight += each.weight;
    }
    return out;
  }

  static size_t ranks_in(std::span<const OpenRow> rows) {
    std::map<uint32_t, std::vector<bool>> seen;
    size_t count = 0;
    for (const OpenRow& row : rows) {
      std::vector<bool>& members = seen[row.open];
      if (members.size() <= row.member) members.resize(row.member + 1);
      members[row.member] = true;
    }
    for (const auto& [open, members] : seen) {
      count = std::max(count, static_cast<size_t>(std::count(members.begin(), members.end(), true)));
    }
    return count;
  }

  // Ends as close as matched ones, and every other shift clearly worse: the fewer collectives, the more clearly.
  const Shift* the_only_one(const std::vector<Shift>& judged, std::span<const OpenRow> rows) const {
    const Shift* best = nullptr;
    for (const Shift& each : judged) {
      if (each.collectives < 4 || !is_possible(each.difference_ns)) continue;
      if (best == nullptr || each.cost < best->cost) best = &each;
    }
    if (best == nullptr || best->cost > kMostCost) return nullptr;
    const double clearly = 2 + 5 / static_cast<double>(best->collectives);
    size_t rejected = 0;
    for (const Shift& each : judged) {
      if (&each == best || std::abs(each.difference_ns - best->difference_ns) < axis_.reach_ns()) continue;
      const bool clear = each.collectives >= 2 && each.cost >= clearly * std::max(1.0, best->cost);
      if (!clear && is_possible(each.difference_ns)) return nullptr;
      rejected += clear ? 1 : 0;
    }
    // The truth may lie where the axis does not reach: then fitting must be no chance.
    double first = INFINITY;
    double last = -INFINITY;
    for (const OpenRow& row : rows) {
      first = std::min(first, axis_.places[row.open].front().end_ns);
      last = std::max(last, axis_.places[row.open].back().end_ns);
    }
    const bool may_be_outside = !axis_.intake.has_unix_times || rows.front().end_ns - kMostOffsetNs < first ||
                                rows.back().end_ns + kMostOffsetNs > last;
    return may_be_outside && (best->collectives < 8 || rejected < 3) ? nullptr : best;
  }

  // Traces that do not name their hosts: where neighbouring ranks have one clock, they share a machine, and a rank
  // between them that can have this clock and no other of theirs is on it, too.
  const Shift* clock_of_neighbours(const std::vector<Shift>& judged, uint32_t domain, double middle_ns) const {
    constexpr int64_t kRanksOfMachine = 8;
    const double same = std::max(3'000.0, 4 * axis_.noise_ns);
    const auto own = std::find_if(axis_.intake.ranks.begin(), axis_.intake.ranks.end(),
                                  [&](const RankRows& rank) { return rank.domain == domain; });
    if (!own->part.host.empty()) return nullptr;
    const Shift* one = nullptr;
    for (const Shift& each : judged) {
      if (each.cost > kMostCost || each.collectives == 0 || !is_possible(each.difference_ns)) continue;
      size_t agree = 0;
      for (const RankRows& rank : axis_.intake.ranks) {
        if (std::abs(rank.part.rank - own->part.rank) >= kRanksOfMachine || !axis_.is_known(rank.domain)) continue;
        const DomainClock& clock = axis_.clocks.domains[rank.domain];
        const double ahead = clock.offset_ns + clock.drift * (middle_ns - static_cast<double>(clock.at_ns));
        agree += std::abs(ahead - each.difference_ns) < same ? 1 : 0;
      }
      if (agree == 0) continue;
      if (agree < 2 || one != nullptr) return nullptr;
      one = &each;
    }
    return one;
  }

  Axis& axis_;
};

}  // namespace

bool find_clock(Axis& axis, uint32_t domain, const std::vector<OpenRow>& rows) {
  return !rows.empty() && ClockFinder(axis).find(domain, rows);
}

}  // namespace firelane::ranks
