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
constexpr double kWideNoiseNs = 40'000;
constexpr double kSlackNs = 2'500;  // kernels start and end some microseconds beside what clocks say
constexpr double kMissed = 8;       // what a row without a collective counts as, in deviations

// How well a difference of clocks explains the rows of a machine.
struct Shift {
  double difference_ns = 0;  // in the middle of the rows
  double drift = 0;
  double cost = 0;         // deviations of ends from the axis, in those of matched ends: 1 is as good as can be
  size_t collectives = 0;  // that it was judged by
  size_t bursts = 0;       // of them: those that follow each other closely are one
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
    rows_ = rows;
    middle_ns_ = (rows.front().end_ns + rows.back().end_ns) / 2;
    ranks_ = ranks_in(rows);
    noise_ns_ = axis_.noise_ns;
    std::vector<Shift> judged;
    const Shift* one = nullptr;
    if (axis_.noise_known) {
      judged = judge_all(tried);
      one = the_only_one(judged);
      if (one == nullptr) one = clock_of_neighbours(judged, domain);
    }
    constexpr size_t kSeveralRanks = 4;
    if (one == nullptr && !axis_.noise_between && ranks_ >= kSeveralRanks) {
      // Nothing says yet how far the ends of two machines lie apart: further, perhaps, than within one. A single rank
      // whose rows are cut and lack some fits by chance: the ranks of a machine do not do so together.
      noise_ns_ = std::max(kWideNoiseNs, axis_.noise_ns);
      judged = judge_all(tried);
      one = the_only_possible(judged);
      if (one != nullptr) {
        axis_.noise_ns = std::max(axis_.noise_ns, noise_ns_ * std::max(0.25, one->cost));
        axis_.noise_known = axis_.noise_supposed = true;
      }
    }
    if (one == nullptr) return false;
    DomainClock& clock = axis_.clocks.domains[domain];
    clock.known = true;
    clock.consistent = true;
    clock.drift = one->drift;
    clock.offset_ns = one->difference_ns + one->drift * (static_cast<double>(clock.at_ns) - middle_ns_);
    return true;
  }

 private:
  bool is_possible(double difference_ns) const {
    return !axis_.intake.has_unix_times || std::abs(difference_ns) <= kMostOffsetNs;
  }

  // Rows that shifts are looked for with: of a group with few collectives, spread over the recording. Best where all
  // that a clock may put them onto was recorded: then the true shift is among those that are tried (sees_all_). Of two
  // rows, since the collective of a single one may be missing.
  std::vector<size_t> anchors(std::span<const OpenRow> rows) {
    std::vector<size_t> rarest;
    std::map<uint32_t, size_t> seen;  // by group: rows all of whose collectives are on the axis
    for (size_t i = 0; i < rows.size(); ++i) {
      if (sees_all(rows[i])) ++seen[rows[i].open];
    }
    const auto places_of = [&](size_t i) { return axis_.places[rows[i].open].size(); };
    for (size_t i = 0; i < rows.size(); ++i) {
      if (const auto at = seen.find(rows[i].open); at != seen.end() && at->second >= 2 && sees_all(rows[i])) {
        rarest.push_back(i);
      }
    }
    sees_all_ = !rarest.empty();
    for (size_t i = 0; i < rows.size() && !sees_all_; ++i) rarest.push_back(i);
    std::stable_sort(rarest.begin(), rarest.end(), [&](size_t a, size_t b) { return places_of(a) < places_of(b); });
    const size_t fewest = places_of(rarest[0]);
    size_t count = 0;
    while (count < rarest.size() && places_of(rarest[count]) <= 2 * fewest) ++count;
    std::vector<size_t> out;
    for (size_t a = 0; a < std::min(kAnchors, count); ++a) {
      out.push_back(rarest[count <= kAnchors ? a : a * (count - 1) / (kAnchors - 1)]);
    }
    return out;
  }

  bool sees_all(const OpenRow& row) const {
    return axis_.intake.has_unix_times &&
           axis_.is_covered(row.open, row.end_ns - kMostOffsetNs, row.end_ns + kMostOffsetNs);
  }

  // Differences of clocks that put one of some rows onto a collective of its kind.
  std::vector<double> shifts(std::span<const OpenRow> rows) {
    std::vector<double> out;
    for (const size_t a : anchors(rows)) {
      const OpenRow& anchor = rows[a];
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

  std::vector<Shift> judge_all(const std::vector<double>& tried) {
    std::vector<Shift> out;
    for (const double difference : tried) out.push_back(judge(difference));
    return out;
  }

  // A machine's rows of one collective are one observation: its ranks have the same clock.
  struct Sum {
    double off = 0, x = 0;
    uint32_t rows = 0;
    const Place* place = nullptr;
    ClockTimes own;
  };

  // Rows by the collective that they fall onto under this shift. How many fall onto none.
  size_t lay_on(double difference_ns, double drift, double wide_ns) {
    for (const uint32_t slot : touched_) sums_[slot] = {};
    touched_.clear();
    size_t missed = 0;
    for (const OpenRow& row : rows_) {
      const std::vector<Place>& places = axis_.places[row.open];
      const double x = row.end_ns - middle_ns_;
      const double end = row.end_ns - difference_ns - drift * x;
      if (end < places.front().end_ns - reach_ns() || end > places.back().end_ns + reach_ns()) continue;
      const Axis::Nearest near = axis_.nearest(places, row.signature, end, wide_ns);
      if (near.place == nullptr) {
        ++missed;
        continue;
      }
      const auto slot = row.first_slot + static_cast<uint32_t>(near.place - places.data());
      if (slot >= sums_.size()) sums_.resize(std::max<size_t>(slot + 1, 2 * sums_.size()));
      Sum& sum = sums_[slot];
      if (sum.rows == 0) touched_.push_back(slot);
      sum.off += end - near.place->end_ns;
      sum.x += x;
      sum.place = near.place;
      sum.own.last_start_ns = std::max(sum.own.last_start_ns, row.start_ns);
      sum.own.first_end_ns = std::min(sum.own.first_end_ns, row.end_ns);
      ++sum.rows;
    }
    return missed;
  }

  Shift judge(double difference_ns) {
    Shift out{.difference_ns = difference_ns};
    const double wide = 12 * reach_ns();
    // Twice: around the shift that an anchor gave, then around their own middle.
    lay_on(out.difference_ns, 0, wide);
    if (!touched_.empty()) {
      std::vector<double> offs;
      for (const uint32_t slot : touched_) offs.push_back(sums_[slot].off / sums_[slot].rows);
      const auto at = offs.begin() + static_cast<std::ptrdiff_t>(offs.size() / 2);
      std::nth_element(offs.begin(), at, offs.end());
      out.difference_ns += *at;
    }
    const size_t missed = lay_on(out.difference_ns, 0, wide);
    // A line through what is left, its drift as small as the ends allow: crystals are within 50 ppm.
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    const auto weight_of = [](const Sum& sum) { return 1 / (1.0 / sum.rows + 1.0 / sum.place->members); };
    for (const uint32_t slot : touched_) {
      const Sum& sum = sums_[slot];
      const double weight = weight_of(sum);
      const double x = sum.x / sum.rows;
      const double y = sum.off / sum.rows;
      w += weight, wx += weight * x, wy += weight * y, wxx += weight * x * x, wxy += weight * x * y;
    }
    if (w > 0) {
      constexpr double kUsualDrift = 50e-6;
      const double prior = noise_ns_ * noise_ns_ / (kUsualDrift * kUsualDrift);
      const double determinant = w * (wxx + prior) - wx * wx;
      out.drift = std::clamp((w * wxy - wx * wy) / determinant, -kMostAxisDrift, kMostAxisDrift);
      const double a = (wy - out.drift * wx) / w;
      std::vector<Observation> seen;
      for (const uint32_t slot : touched_) {
        const Sum& sum = sums_[slot];
        seen.push_back({sum.x / sum.rows, sum.off / sum.rows - a - out.drift * sum.x / sum.rows, weight_of(sum)});
      }
      std::sort(seen.begin(), seen.end(), [](const Observation& p, const Observation& q) { return p.x < q.x; });
      out.difference_ns += a;
      out.collectives = seen.size();
      // Missed rows of several ranks may be of one collective.
      const double missing = static_cast<double>(missed) / static_cast<double>(std::max<size_t>(1, ranks_));
      const std::vector<Observation> bursts = together(seen);
      out.bursts = bursts.size();
      out.cost = std::max(cost_of(seen, missing), cost_of(bursts, missing));
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
      const double deviations = std::min(kMissed, std::abs(each.off) / noise_ns_ * std::sqrt(each.weight));
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
  const Shift* the_only_one(const std::vector<Shift>& judged) const {
    const Shift* best = nullptr;
    for (const Shift& each : judged) {
      if (each.collectives < 4 || !is_possible(each.difference_ns)) continue;
      if (best == nullptr || each.cost < best->cost) best = &each;
    }
    if (best == nullptr || best->cost > kMostCost) return nullptr;
    constexpr size_t kManyCollectives = 16;
    if (is_supposed() && best->collectives < kManyCollectives) return nullptr;
    size_t rejected = 0;
    for (const Shift& each : judged) {
      if (is_same(each, *best)) continue;
      const bool clear = is_clearly_worse(each, *best);
      if (!clear && is_possible(each.difference_ns)) return nullptr;
      rejected += clear ? 1 : 0;
    }
    return sees_all_ || (best->collectives >= 8 && rejected >= 3 && is_no_chance(judged, *best)) ? best : nullptr;
  }

  // The truth may lie where the axis does not reach. Each burst of a wrong shift falls anywhere within what the next
  // best one is off: that all of them fit must be unlikely for every shift of every rank.
  bool is_no_chance(const std::vector<Shift>& judged, const Shift& best) const {
    constexpr double kUnlikely = 0.01;
    double next = kMissed;
    for (const Shift& each : judged) {
      if (!is_same(each, best) && each.collectives >= 2) next = std::min(next, each.cost);
    }
    const auto tried = static_cast<double>(judged.size() * axis_.intake.ranks.size());
    return tried * std::pow(std::max(1.0, best.cost) / next, static_cast<double>(best.bursts) - 1) < kUnlikely;
  }

  bool is_same(const Shift& a, const Shift& b) const {
    return &a == &b || std::abs(a.difference_ns - b.difference_ns) < reach_ns();
  }
  // The right one fits badly by chance, too: of few bursts and among many ranks one does.
  bool is_clearly_worse(const Shift& each, const Shift& best) const {
    constexpr double kShiftsOfRank = 10;
    const double deviations = std::sqrt(2 * std::log(kShiftsOfRank * static_cast<double>(axis_.intake.ranks.size())));
    const double freedom = std::max(1.0, static_cast<double>(best.bursts) - 1);
    const double clearly =
        std::max(2 + 5 / static_cast<double>(best.collectives), 1 + deviations / std::sqrt(2 * freedom));
    return each.collectives >= 2 && each.cost >= clearly * std::max(1.0, best.cost);
  }

  // Where ends may lie far apart: the only shift that clocks can have under which no rank ends before another has
  // begun, or that leaves all others clearly behind. It must be sure that the true one is among them.
  const Shift* the_only_possible(const std::vector<Shift>& judged) {
    constexpr size_t kLeastCollectives = 24;
    if (!sees_all_ || !reaches_everywhere()) return nullptr;
    const Shift* best = nullptr;
    for (const Shift& each : judged) {
      if (each.collectives < kLeastCollectives || !is_possible(each.difference_ns)) continue;
      if (best == nullptr || each.cost < best->cost) best = &each;
    }
    if (best == nullptr || best->cost > kMostCost || contradicts(*best)) return nullptr;
    for (const Shift& each : judged) {
      if (is_same(each, *best) || !is_possible(each.difference_ns) || is_clearly_worse(each, *best)) continue;
      if (!contradicts(each)) return nullptr;
    }
    return best;
  }

  // However far clocks are off, most rows of the machine have a collective on the axis.
  bool reaches_everywhere() const {
    if (!axis_.intake.has_unix_times) return false;
    for (const double offset : {-kMostOffsetNs, kMostOffsetNs}) {
      size_t inside = 0;
      for (const OpenRow& row : rows_) {
        const std::vector<Place>& places = axis_.places[row.open];
        const double end = row.end_ns - offset;
        inside += end >= places.front().end_ns && end <= places.back().end_ns ? 1 : 0;
      }
      if (2 * inside < rows_.size()) return false;
    }
    return true;
  }

  // Whether ranks would end before others begin under this shift, whatever line the clock runs along. One collective
  // is no proof: another one may have been taken for it whose rows are missing.
  bool contradicts(const Shift& shift) {
    lay_on(shift.difference_ns, shift.drift, reach_ns());
    std::map<uint32_t, std::vector<LinePoint>> by_clock;
    for (const uint32_t slot : touched_) {
      const Sum& sum = sums_[slot];
      if (!synchronizes(axis_.intake.signatures[sum.place->signature].op)) continue;
      for (uint8_t c = 0; c < sum.place->clock_count; ++c) {
        const ClockTimes& other = sum.place->clocks[c];
        by_clock[other.domain].push_back({.x = sum.own.first_end_ns - middle_ns_,
                                          .low = sum.own.last_start_ns - other.first_end_ns - kSlackNs,
                                          .high = sum.own.first_end_ns - other.last_start_ns + kSlackNs});
      }
    }
    return std::ranges::any_of(by_clock, [](auto& each) { return !has_line(each.second); });
  }

  // Whether a clock can run inside of all points but a few.
  static bool has_line(std::vector<LinePoint>& points) {
    constexpr size_t kMostLeftOut = 2;
    for (size_t left_out = 0;; ++left_out) {
      if (bound_line(points, 0, 0, kMostAxisDrift, 0, 1).feasible) return true;
      if (left_out == kMostLeftOut + points.size() / 50) return false;
      // The one that the most others contradict.
      size_t worst = 0;
      size_t most = 0;
      for (size_t i = 0; i < points.size(); ++i) {
        const auto count = static_cast<size_t>(std::ranges::count_if(points, [&](const LinePoint& p) {
          const double drift = kMostAxisDrift * std::abs(p.x - points[i].x);
          return p.low > points[i].high + drift || p.high < points[i].low - drift;
        }));
        if (count > most) {
          most = count;
          worst = i;
        }
      }
      if (most == 0) return true;  // no two of them: only lines that bend
      points.erase(points.begin() + static_cast<std::ptrdiff_t>(worst));
    }
  }

  // Traces that do not name their hosts: where neighbouring ranks have one clock, they share a machine, and a rank that
  // can have this clock and no other of theirs is on it, too: if it stands between them, or if it cannot be on a
  // machine of its own of which no clock is known: then that of another machine may fit by chance.
  const Shift* clock_of_neighbours(const std::vector<Shift>& judged, uint32_t domain) const {
    constexpr int64_t kRanksOfMachine = 8;
    const double same = std::max(3'000.0, 4 * noise_ns_);
    const std::vector<RankRows>& ranks = axis_.intake.ranks;
    const Part& own = ranks[axis_.first_rank[domain]].part;
    if (!own.host.empty()) return nullptr;
    std::vector<Neighbour> beside;
    const auto number = [](const RankRows& rank) { return rank.part.rank; };
    auto at = std::ranges::lower_bound(ranks, own.rank - kRanksOfMachine + 1, {}, number);
    for (; at != ranks.end() && at->part.rank < own.rank + kRanksOfMachine; ++at) {
      if (!axis_.is_known(at->domain)) continue;
      const DomainClock& clock = axis_.clocks.domains[at->domain];
      beside.push_back(
          {at->part.rank, clock.offset_ns + clock.drift * (middle_ns_ - static_cast<double>(clock.at_ns))});
    }
    const Shift* one = nullptr;
    for (const Shift& each : judged) {
      if (each.cost > kMostCost || each.collectives == 0 || !is_possible(each.difference_ns)) continue;
      std::vector<int64_t> agree;
      for (const Neighbour& neighbour : beside) {
        if (std::abs(neighbour.ahead_ns - each.difference_ns) < same) agree.push_back(neighbour.rank);
      }
      if (agree.empty()) continue;
      if (agree.size() < 2 || one != nullptr || may_be_elsewhere(own.rank, agree, beside)) return nullptr;
      one = &each;
    }
    return one;
  }

  struct Neighbour {
    int64_t rank = 0;
    double ahead_ns = 0;
  };

  // Whether there may be a machine beside that of the ranks that agree, as large as it, with this rank and with no
  // clock that is known.
  bool may_be_elsewhere(int64_t rank, const std::vector<int64_t>& agree, const std::vector<Neighbour>& beside) const {
    if (agree.front() < rank && rank < agree.back()) return false;
    const int64_t size = agree.back() - agree.front() + 1;
    const int64_t first = agree.back() < rank ? rank : rank - size + 1;
    const int64_t last = first + size - 1;
    const std::vector<RankRows>& ranks = axis_.intake.ranks;
    if (first < ranks.front().part.rank || last > ranks.back().part.rank) return false;
    return std::ranges::none_of(beside, [&](const Neighbour& n) { return n.rank >= first && n.rank <= last; });
  }

  double reach_ns() const { return Axis::reach_ns(noise_ns_); }
  // The noise is one that was supposed, and that a machine then fitted: a few collectives do so by chance.
  bool is_supposed() const { return axis_.noise_supposed; }

  Axis& axis_;
  std::span<const OpenRow> rows_;
  bool sees_all_ = false;  // the true shift is among those that were tried
  double middle_ns_ = 0;
  double noise_ns_ = 0;
  size_t ranks_ = 0;
  std::vector<Sum> sums_;  // by slot
  std::vector<uint32_t> touched_;
};

}  // namespace

bool find_clock(Axis& axis, uint32_t domain, const std::vector<OpenRow>& rows) {
  return !rows.empty() && ClockFinder(axis).find(domain, rows);
}

}  // namespace firelane::ranks
