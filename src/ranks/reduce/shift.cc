// A difference of clocks is taken like a hypothesis in statistics: by how unlikely every other one is.
#include "ranks/reduce/shift.h"

#include <algorithm>
#include <cmath>

#include "ranks/reduce/chance.h"
#include "ranks/reduce/shift_fit.h"

namespace firelane::ranks {

namespace {

constexpr double kLeastPairs = 6;  // of a shift that is taken

// For groups that both have. Few rows are laid onto many: shifts are looked for from some of the rows that are laid,
// and those of many, most of which the few cannot have, would not find the true one.
bool knows_more(const Island& a, const Island& b) {
  size_t of_a = 0;
  size_t of_b = 0;
  size_t i = 0;
  for (const GroupPlaces& group : b.groups) {
    while (i < a.groups.size() && a.groups[i].laid < group.laid) ++i;
    if (i == a.groups.size()) break;
    if (a.groups[i].laid != group.laid) continue;
    of_a += a.groups[i].places.size();
    of_b += group.places.size();
  }
  return of_a > of_b;
}

std::vector<ShiftFit> fit_all(const ShiftJudge& judge, size_t& judged) {
  std::vector<ShiftFit> out;
  for (const double each : judge.shifts()) {
    ShiftFit fit = judge.judge(each);
    judged += judge.rows();
    const bool known = std::ranges::any_of(out, [&](const ShiftFit& other) { return is_same_shift(other, fit); });
    if (fit.pairs.size() >= 2 && !known) out.push_back(std::move(fit));
  }
  return out;
}

// How surely a fit is the true one. Probabilities are logarithms.
class Case {
 public:
  Case(const ShiftJudge& judge, const std::vector<ShiftFit>& fits, const ShiftFit& best)
      : judge_(judge), fits_(fits), best_(best), share_(independent_share(best)) {
    // Of the best one's rows some lack partners, too.
    usual_miss_ = share_of(best.missed, best.pairs.size() + best.missed);
    usual_flaw_ = share_of(best.missed + best.contradicted, best.pairs.size() + best.missed + best.synchronized);
  }

  // That the rival is the true one and looks like this.
  double log_chance(const ShiftFit& rival) const {
    if (!judge_.is_possible(rival.ahead_ns)) return -INFINITY;
    const double flaws = static_cast<double>(rival.missed + rival.contradicted);
    const double looked_at = static_cast<double>(rival.pairs.size() + rival.missed + rival.synchronized);
    const double flawed = log_chance_of_hits(flaws, looked_at, usual_flaw_);
    const auto with_flaws = [&](double log_chance) {
      const double both = log_chance + flawed;
      return both + std::log(1 - both);  // the product of two, by Fisher
    };
    const double bursts =
        with_flaws(log_chance_of_ratio(rival.burst_variance / best_.burst_variance,
                                       static_cast<double>(rival.bursts) - 1, static_cast<double>(best_.bursts) - 1));
    return std::max(with_flaws(log_chance_of_noise(rival)), kBurstsCount * bursts);
  }

  // That ends and arrivals scatter so much more under it.
  double log_chance_of_noise(const ShiftFit& rival) const {
    double degrees_rival = degrees(rival);
    double degrees_best = degrees(best_);
    double ratio = rival.variance / best_.variance;
    const double arrivals_rival = share_ * rival.arrival_degrees;
    const double arrivals_best = share_ * best_.arrival_degrees;
    if (degrees_rival > 0 && degrees_best > 0 && arrivals_rival > 1 && arrivals_best > 1) {
      const double arrivals = rival.arrival_variance / best_.arrival_variance;
      ratio = (ratio * degrees_rival + arrivals * arrivals_rival) / (degrees_rival + arrivals_rival);
      degrees_rival += arrivals_rival;
      degrees_best += arrivals_best;
    }
    return log_chance_of_ratio(ratio, degrees_rival, degrees_best);
  }

  // That some other one is the true one: a rival, or one that puts the rows where nothing was recorded, so that nobody
  // can look at it.
  double log_chance_of_others() const {
    const double even = log_chance_of_evenness();
    double sum = std::exp(even + kLogOutside + static_cast<double>(judge_.always_inside()) * std::log(usual_miss_));
    for (const ShiftFit& each : fits_) {
      if (is_rival(each)) sum += std::exp(std::min(even, log_chance(each)));
    }
    return std::log(sum);
  }

 private:
  // Bursts are few. They only have to confirm what single ends say: 1e-3 of them is as good as 1e-8, its power of 8/3.
  static constexpr double kBurstsCount = 8.0 / 3;
  static constexpr double kLogOutside = -4.6;  // ranks record the same steps as a rule: one job of 100 does not

  static double share_of(size_t hits, size_t tries) {
    return (static_cast<double>(hits) + 1) / (static_cast<double>(tries) + 2);
  }
  bool is_rival(const ShiftFit& fit) const { return &fit != &best_ && !is_same_shift(fit, best_); }
  double degrees(const ShiftFit& fit) const { return share_ * fit.count() - fit.left_out - 1.5; }

  // That a wrong one is as even as the best: by what others show that are wrong.
  double log_chance_of_evenness() const {
    constexpr size_t kLeastBursts = 3;
    double out = -INFINITY;
    double count = 0;
    for (const ShiftFit& each : fits_) {
      if (!is_rival(each) || each.bursts < kLeastBursts) continue;
      ++count;
      out = std::max(
          out, log_chance_of_ratio(each.burst_variance / best_.burst_variance, static_cast<double>(each.bursts) - 1,
                                   static_cast<double>(best_.bursts) - 2));
    }
    return count == 0 ? 0 : std::min(0.0, out + std::log(count));
  }

  const ShiftJudge& judge_;
  const std::vector<ShiftFit>& fits_;
  const ShiftFit& best_;
  double share_;
  double usual_miss_ = 0;
  double usual_flaw_ = 0;
};

}  // namespace

FoundShift find_shift(const Intake& intake, const Island& island, const Island& other) {
  FoundShift out;
  if (knows_more(other, island)) {
    out = find_shift(intake, other, island);
    out.line = out.line.reversed();
    return out;
  }
  const ShiftJudge judge(intake, island, other);
  if (judge.rows() == 0) return out;
  const std::vector<ShiftFit> fits = fit_all(judge, out.judged);
  double most = 0;
  for (const ShiftFit& each : fits) most = std::max(most, each.count());
  const ShiftFit* best = nullptr;
  for (const ShiftFit& each : fits) {
    if (!judge.is_possible(each.ahead_ns) || each.count() < kLeastPairs || 3 * each.count() < most) continue;
    if (3 * static_cast<double>(each.missed) > each.count()) continue;
    if (best == nullptr || each.variance < best->variance) best = &each;
  }
  if (best == nullptr) {
    out.found = fits.size() > 1 ? ShiftFound::kSeveral : ShiftFound::kNone;
    return out;
  }
  out.log_chance = std::min(0.0, Case(judge, fits, *best).log_chance_of_others());
  out.found = out.log_chance < kLogUnlikely ? ShiftFound::kOne : ShiftFound::kSeveral;
  out.line = {best->ahead_ns, best->drift, judge.middle_ns()};
  out.noise = judge.noise_of(*best);
  return out;
}

SameClock try_same_clock(const Intake& intake, const Island& island, const Island& other, double usual_ns) {
  constexpr double kClocksApartNs = 100'000'000;  // two that are off by 50 ms each way
  constexpr double kLogUnusual = -9;              // that the true shift looks so much worse
  constexpr double kLeastSeen = 4;
  if (knows_more(other, island)) return try_same_clock(intake, other, island, usual_ns);
  SameClock out;
  const ShiftJudge judge(intake, island, other);
  if (judge.rows() == 0) return out;
  const ShiftFit zero = judge.judge(0, ShiftJudge::Drift::kNone);
  out.judged = judge.rows();
  out.is_seen = zero.count() + static_cast<double>(zero.missed) >= kLeastSeen;
  if (!out.is_seen || zero.count() < kLeastSeen || 3 * static_cast<double>(zero.missed) > zero.count()) return out;
  out.noise = judge.noise_of(zero);
  if (usual_ns == 0) return out;
  const double noise_ns = std::max(out.noise.places_ns, usual_ns);
  const double error_ns = noise_ns / std::sqrt(std::max(1.0, independent_share(zero) * zero.count()));
  // Ranks may end a little later than others as a rule.
  if (std::abs(zero.ahead_ns) > 4 * error_ns + noise_ns) return out;
  std::vector<ShiftFit> fits = fit_all(judge, out.judged);
  double better = 0;
  for (const ShiftFit& each : fits) {
    if (is_same_shift(each, zero) || each.count() < kLeastSeen) continue;
    if (3 * static_cast<double>(each.missed) <= each.count()) {
      better = std::min(better, Case(judge, fits, each).log_chance(zero));
    }
  }
  if (better < kLogUnusual) return out;
  out.may_be = true;
  // Another clock is this near by chance, and its true shift looks as it does.
  const double near = 2 * (std::abs(zero.ahead_ns) + error_ns + 1'000) / kClocksApartNs;
  out.log_chance = std::min(0.0, std::log(near) + Case(judge, fits, zero).log_chance_of_others());
  return out;
}

}  // namespace firelane::ranks
