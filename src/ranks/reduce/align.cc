#include "ranks/reduce/align.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace firelane::ranks {

namespace {

constexpr int kScoredSteps = 96;  // to each side of the anchor
constexpr size_t kMostCandidates = 4096;

struct Candidate {
  size_t anchor = 0;  // row of the reference
  size_t other = 0;
  double difference_ns = 0;
  double roughness_ns = 0;  // how much the difference of ends jumps from one collective to the next
  int64_t matched = 0;
  int64_t skipped = 0;
};

class Aligner {
 public:
  Aligner(const Lane& reference, const Lane& other, const std::vector<Signature>& signatures, const ClockGuess& guess)
      : reference_(reference),
        other_(other),
        signatures_(signatures),
        least_spread_ns_(guess.least_spread_ns),
        most_spread_ns_(guess.most_spread_ns) {}
  // From here on ends must lie this near each other.
  void set_spread(double spread_ns) { most_spread_ns_ = std::max(least_spread_ns_, spread_ns); }

  bool compatible(size_t i, size_t j) const {
    const uint32_t a = reference_.at(i).signature;
    const uint32_t b = other_.at(j).signature;
    if (a == b) return true;
    const Signature& x = signatures_[a];
    const Signature& y = signatures_[b];
    // Arguments that went missing agree with any.
    return x.op == y.op && (x.size_key < 0 || y.size_key < 0 || x.size_key == y.size_key) &&
           (x.dtype.empty() || y.dtype.empty() || x.dtype == y.dtype);
  }
  double difference(size_t i, size_t j) const {
    return static_cast<double>(other_.at(j).end_ns - reference_.at(i).end_ns);
  }

  // Walks from the anchor; `visit(i, j)` for each pair.
  template <typename Visit>
  void walk(size_t i0, size_t j0, int direction, int64_t most, Candidate& score, const Visit& visit) const {
    double expected = difference(i0, j0);
    auto i = static_cast<std::ptrdiff_t>(i0);
    auto j = static_cast<std::ptrdiff_t>(j0);
    std::ptrdiff_t last_i = i;
    std::ptrdiff_t last_j = j;
    i += direction;
    j += direction;
    const auto n = static_cast<std::ptrdiff_t>(reference_.size());
    const auto m = static_cast<std::ptrdiff_t>(other_.size());
    for (int64_t step = 0; step < most && i >= 0 && j >= 0 && i < n && j < m; ++step) {
      const auto a = static_cast<size_t>(i);
      const auto b = static_cast<size_t>(j);
      const double off = difference(a, b) - expected;
      const double since = std::min(distance(reference_, i, last_i), distance(other_, j, last_j));
      const double tolerance = std::clamp(0.35 * since, least_spread_ns_, most_spread_ns_);
      if (compatible(a, b) && std::abs(off) <= tolerance) {
        visit(a, b);
        ++score.matched;
        score.roughness_ns += std::abs(off);
        expected += 0.5 * off;
        last_i = i;
        last_j = j;
        i += direction;
        j += direction;
      } else if ((off > 0) == (direction > 0)) {
        ++score.skipped;
        i += direction;  // the other lacks it
      } else {
        ++score.skipped;
        j += direction;
      }
    }
  }

  Candidate score(size_t i, size_t j) const {
    Candidate out{.anchor = i, .other = j, .difference_ns = difference(i, j), .matched = 1};
    walk(i, j, +1, kScoredSteps, out, [](size_t, size_t) {});
    walk(i, j, -1, kScoredSteps, out, [](size_t, size_t) {});
    out.roughness_ns /= static_cast<double>(std::max<int64_t>(1, out.matched - 1));
    return out;
  }

 private:
  static double distance(const Lane& lane, std::ptrdiff_t a, std::ptrdiff_t b) {
    return std::abs(
        static_cast<double>(lane.at(static_cast<size_t>(a)).end_ns - lane.at(static_cast<size_t>(b)).end_ns));
  }

  const Lane& reference_;
  const Lane& other_;
  const std::vector<Signature>& signatures_;
  double least_spread_ns_;
  double most_spread_ns_;
};

// Most rows have a partner; or, where traces lack many rows, the partners of the others lie close beside each other.
bool fits(const Candidate& c, int64_t possible, double usual_interval_ns) {
  if (c.matched >= std::min<int64_t>(3, possible) && c.skipped <= c.matched / 4) return true;
  return c.matched >= 4 && c.skipped <= 3 * c.matched && c.roughness_ns < 0.01 * usual_interval_ns;
}

double usual_interval(const Lane& lane) {
  std::vector<int64_t> intervals;
  for (size_t i = 1; i < lane.size(); ++i) intervals.push_back(lane.at(i).end_ns - lane.at(i - 1).end_ns);
  if (intervals.empty()) return 0;
  const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
  std::nth_element(intervals.begin(), middle, intervals.end());
  return static_cast<double>(*middle);
}

std::vector<Candidate> candidates_at(const Aligner& aligner, const Lane& reference, const Lane& other, size_t anchor,
                                     const ClockGuess& guess, double usual_interval_ns) {
  std::vector<Candidate> out;
  const double centre = static_cast<double>(reference.at(anchor).end_ns) + guess.difference_ns;
  const auto possible = static_cast<int64_t>(std::min(reference.size(), other.size()));
  // Ends are nearly in order: rows that overlap are few.
  size_t j = 0;
  if (std::isfinite(guess.within_ns)) {
    size_t low = 0;
    size_t high = other.size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (static_cast<double>(other.at(middle).end_ns) < centre - guess.within_ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    j = low;
  }
  for (; j < other.size() && out.size() < kMostCandidates; ++j) {
    if (static_cast<double>(other.at(j).end_ns) > centre + guess.within_ns) break;
    if (!aligner.compatible(anchor, j)) continue;
    const Candidate candidate = aligner.score(anchor, j);
    if (fits(candidate, possible, usual_interval_ns)) out.push_back(candidate);
  }
  return out;
}

// The same shift, found from different anchors.
bool same_shift(const Candidate& a, const Candidate& b, double usual_interval_ns) {
  return std::abs(a.difference_ns - b.difference_ns) < 0.3 * usual_interval_ns;
}

// How many times rougher a rival must be. Of few rows the mean of either is uncertain, and of many ranks the least
// likely one counts: in a job of 4,096, eleven rows were three times smoother under a wrong shift.
double clearly(const Candidate& best, const Candidate& rival, const ClockGuess& guess) {
  constexpr double kOfOneRow = 0.76;  // deviation of a distance, in means of it
  constexpr double kShiftsOfRank = 10;
  const double deviations = std::sqrt(2 * std::log(kShiftsOfRank * static_cast<double>(guess.ranks)));
  const double uncertain =
      std::sqrt(1.0 / static_cast<double>(best.matched) + 1.0 / static_cast<double>(rival.matched));
  return std::max(3.0, std::exp(kOfOneRow * deviations * uncertain));
}

// The only one that fits, or nothing.
const Candidate* the_one(const std::vector<Candidate>& all, const ClockGuess& guess, double usual_interval_ns) {
  if (all.empty()) return nullptr;
  const Candidate* best = &all[0];
  for (const Candidate& each : all) {
    if (each.roughness_ns < best->roughness_ns) best = &each;
  }
  constexpr double kSureClock = 2'000'000;
  const bool sure_clock = guess.within_ns <= kSureClock || guess.least_spread_ns > kSureClock;
  bool alone = true;
  bool only = true;
  for (const Candidate& each : all) {
    if (&each == best || same_shift(each, *best, usual_interval_ns)) continue;
    only = false;
    const bool enough = best->matched >= 8 && each.matched >= 3;
    alone = alone && enough && each.roughness_ns > clearly(*best, each, guess) * best->roughness_ns + 500;
  }
  // Few rows are no proof while clocks may be anywhere: the true partner may lie outside of the recording.
  const bool close = best->matched >= 4 && best->roughness_ns < 0.002 * usual_interval_ns;
  if (alone && (!only || sure_clock || close || best->matched >= 8)) return best;
  if (!sure_clock || only) return nullptr;
  // Clocks that are known decide between shifts that lie far apart.
  const Candidate* nearest = &all[0];
  const auto off = [&](const Candidate& c) { return std::abs(c.difference_ns - guess.difference_ns); };
  for (const Candidate& each : all) {
    if (off(each) < off(*nearest)) nearest = &each;
  }
  for (const Candidate& each : all) {
    if (same_shift(each, *nearest, usual_interval_ns)) continue;
    if (off(each) < 5 * off(*nearest) + 50'000) return nullptr;
  }
  return nearest->roughness_ns <= 3 * best->roughness_ns + 5'000 ? nearest : nullptr;
}

}  // namespace

Alignment align(const Lane& reference, const Lane& other, const std::vector<Signature>& signatures,
                const ClockGuess& guess) {
  Alignment out;
  out.reference.assign(other.size(), -1);
  if (reference.size() == 0 || other.size() == 0) return out;
  Aligner aligner(reference, other, signatures, guess);
  // Anchors inside of what both recorded; several, since a collective may be missing on one side.
  size_t first = 0;
  size_t last = reference.size();
  if (std::isfinite(guess.within_ns)) {
    const auto inside = [&](size_t i) {
      const double end = static_cast<double>(reference.at(i).end_ns) + guess.difference_ns;
      return end >= static_cast<double>(other.at(0).end_ns) - guess.within_ns &&
             end <= static_cast<double>(other.at(other.size() - 1).end_ns) + guess.within_ns;
    };
    while (first < last && !inside(first)) ++first;
    while (last > first && !inside(last - 1)) --last;
  }
  if (first == last) return out;
  const size_t length = last - first;
  const double interval = usual_interval(reference);
  // All anchors together: a shift that fits from one of them only because its rival's rows are missing is no proof.
  const auto candidates_with = [&](double spread_ns) {
    std::vector<Candidate> all;
    aligner.set_spread(spread_ns);
    for (const size_t share : std::initializer_list<size_t>{4, 2, 6}) {
      const size_t anchor = first + std::min(length - 1, length * share / 8);
      const std::vector<Candidate> found = candidates_at(aligner, reference, other, anchor, guess, interval);
      all.insert(all.end(), found.begin(), found.end());
    }
    for (size_t anchor = first; anchor < last && all.empty(); anchor += std::max<size_t>(1, length / 16)) {
      all = candidates_at(aligner, reference, other, anchor, guess, interval);
    }
    return all;
  };
  // Ends that lie close together prove the most: wider spreads are tried only where no shift fits a narrow one. The
  // next wider one must agree: there a rival may fit whose ends lie a little further apart.
  std::vector<Candidate> all;
  const Candidate* one = nullptr;
  double spread = 0;
  for (const double each : {100'000.0, 1'000'000.0, guess.most_spread_ns}) {
    spread = std::clamp(each, guess.least_spread_ns, guess.most_spread_ns);
    all = candidates_with(spread);
    if (all.empty()) continue;
    one = the_one(all, guess, interval);
    const double wider = std::clamp(5 * spread, guess.least_spread_ns, guess.most_spread_ns);
    if (one != nullptr && wider > spread) {
      const std::vector<Candidate> rivals = candidates_with(wider);
      const Candidate* confirmed = the_one(rivals, guess, interval);
      if (confirmed == nullptr || !same_shift(*confirmed, *one, interval)) one = nullptr;
    }
    break;
  }
  if (one == nullptr) {
    out.several = !all.empty();
    return out;
  }
  Candidate total{};
  aligner.set_spread(std::max(spread, std::min(3 * spread, 30 * one->roughness_ns)));
  const auto keep = [&](size_t i, size_t j) { out.reference[j] = static_cast<int32_t>(i); };
  keep(one->anchor, one->other);
  aligner.walk(one->anchor, one->other, +1, INT64_MAX, total, keep);
  aligner.walk(one->anchor, one->other, -1, INT64_MAX, total, keep);
  out.certain = total.matched + 1 >= one->matched / 2 && total.skipped <= 3 * (total.matched + 1);
  if (!out.certain) out.reference.assign(other.size(), -1);
  return out;
}

}  // namespace firelane::ranks
