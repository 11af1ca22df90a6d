#include "ranks/reduce/shift_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace firelane::ranks {

namespace {

constexpr double kMostClockOffsetNs = 50'000'000;  // of machines that NTP keeps
constexpr double kMostClockDrift = 200e-6;         // crystals are within 50 ppm, two of them within 100
constexpr double kUsualClockDrift = 50e-6;
constexpr double kLeastVariance = 1e5;  // ns²: what clocks resolve
constexpr size_t kLeftOutOneOf = 12;    // a row whose partner is missing may have taken another

double middle_value(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

ShiftJudge::ShiftJudge(const Intake& intake, const Island& island, const Island& other) : intake_(intake) {
  constexpr double kDeviceWideNs = 5'000'000;
  constexpr double kHostWideNs = 50'000'000;  // threads of a CPU backend are scheduled late on busy cores
  wide_ns_ = island.on_device && other.on_device ? kDeviceWideNs : kHostWideNs;
  size_t a = 0;
  for (const GroupPlaces& theirs : other.groups) {
    while (a < island.groups.size() && island.groups[a].laid < theirs.laid) ++a;
    if (a == island.groups.size()) break;
    if (island.groups[a].laid != theirs.laid || island.groups[a].places.empty()) continue;
    const auto list = static_cast<uint32_t>(lists_.size());
    lists_.push_back(&island.groups[a].places);
    sizes_.push_back(theirs.ranks);
    for (const Place& each : theirs.places) {
      seen_.push_back({.end_ns = each.end_ns,
                       .first_end_ns = each.first_end_ns,
                       .last_start_ns = each.last_start_ns,
                       .signature = each.signature,
                       .list = list,
                       .members = each.members});
    }
  }
  if (seen_.empty()) return;
  std::stable_sort(seen_.begin(), seen_.end(), [](const Seen& p, const Seen& q) { return p.end_ns < q.end_ns; });
  keep_middle();
  find_least();
  middle_ns_ = (seen_.front().end_ns + seen_.back().end_ns) / 2;
}

// For a long recording, the middle of what both have: enough to tell one shift from another.
void ShiftJudge::keep_middle() {
  constexpr size_t kMostSeen = 512;
  if (seen_.size() <= kMostSeen) return;
  double first = INFINITY;
  double last = -INFINITY;
  for (const Places* list : lists_) {
    first = std::min(first, list->front().end_ns);
    last = std::max(last, list->back().end_ns);
  }
  const double middle = (std::max(first, seen_.front().end_ns) + std::min(last, seen_.back().end_ns)) / 2;
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), middle,
                                   [](const Seen& each, double ns) { return each.end_ns < ns; });
  const auto centre = static_cast<size_t>(at - seen_.begin());
  const size_t begin = std::min(centre - std::min(centre, kMostSeen / 2), seen_.size() - kMostSeen);
  seen_.erase(seen_.begin() + static_cast<std::ptrdiff_t>(begin + kMostSeen), seen_.end());
  seen_.erase(seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(begin));
}

// How long a collective takes at least when all have come: half of what it took those that waited the least. The other
// half may be noise that is never absent.
void ShiftJudge::find_least() {
  constexpr double kSurelyMoving = 0.5;
  std::map<std::pair<uint32_t, uint32_t>, double> least;  // by group and signature
  const auto look = [&](uint32_t list, uint32_t signature, double ns) {
    if (!synchronizes(intake_.signatures[signature].op)) return;
    const auto [at, is_new] = least.try_emplace({list, signature}, ns);
    if (!is_new) at->second = std::min(at->second, ns);
  };
  for (const Seen& each : seen_) look(each.list, each.signature, each.first_end_ns - each.last_start_ns);
  for (uint32_t l = 0; l < lists_.size(); ++l) {
    for (const Place& each : *lists_[l]) look(l, each.signature, each.first_end_ns - each.last_start_ns);
  }
  for (Seen& each : seen_) {
    const auto at = least.find({each.list, each.signature});
    each.least_ns = at == least.end() ? -1 : kSurelyMoving * std::max(0.0, at->second);
  }
}

bool ShiftJudge::is_possible(double ahead_ns) const {
  return !intake_.has_unix_times || std::abs(ahead_ns) <= kMostClockOffsetNs;
}

std::vector<double> ShiftJudge::shifts() const {
  constexpr size_t kAnchors = 24;  // the partners of some are missing
  constexpr size_t kMostShifts = 256;
  constexpr double kSameNs = 200'000;
  constexpr double kWidestNs = 800'000;
  std::vector<double> all;
  const size_t anchors = std::min(kAnchors, seen_.size());
  for (size_t a = 0; a < anchors; ++a) {
    const Seen& anchor = seen_[anchors == 1 ? 0 : a * (seen_.size() - 1) / (anchors - 1)];
    const Places& places = *lists_[anchor.list];
    const double within = intake_.has_unix_times ? 2 * kMostClockOffsetNs : INFINITY;
    auto at = std::lower_bound(places.begin(), places.end(), anchor.end_ns - within,
                               [](const Place& place, double ns) { return place.end_ns < ns; });
    for (; at != places.end() && at->end_ns <= anchor.end_ns + within; ++at) {
      if (compatible(intake_, at->signature, anchor.signature)) all.push_back(anchor.end_ns - at->end_ns);
    }
  }
  std::sort(all.begin(), all.end());
  struct Cluster {
    size_t count;
    double middle_ns;
  };
  std::vector<Cluster> clusters;
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end] - all[end - 1] < kSameNs && all[end] - all[i] < kWidestNs) ++end;
    clusters.push_back({end - i, all[(i + end - 1) / 2]});
    i = end;
  }
  std::stable_sort(clusters.begin(), clusters.end(),
                   [](const Cluster& p, const Cluster& q) { return p.count > q.count; });
  if (clusters.size() > kMostShifts) clusters.resize(kMostShifts);
  std::vector<double> out;
  for (const Cluster& each : clusters) out.push_back(each.middle_ns);
  return out;
}

void ShiftJudge::lay_on(ShiftFit& fit) const {
  struct Last {
    size_t place = SIZE_MAX;
    size_t pair = SIZE_MAX;
  };
  std::vector<Last> last(lists_.size());
  fit.pairs.clear();
  fit.missed = 0;
  for (uint32_t i = 0; i < seen_.size(); ++i) {
    const Seen& each = seen_[i];
    const Places& places = *lists_[each.list];
    const double x = each.end_ns - middle_ns_;
    const double end = each.end_ns - fit.ahead_ns - fit.drift * x;
    Last& before = last[each.list];
    if (before.place == SIZE_MAX) {
      const auto at = std::lower_bound(places.begin(), places.end(), end,
                                       [](const Place& place, double ns) { return place.end_ns < ns; });
      before.place = static_cast<size_t>(at - places.begin());
    }
    const size_t found = nearest_place(intake_, places, each.signature, end, wide_ns_, before.place);
    if (found == places.size()) {
      if (end > places.front().end_ns && end < places.back().end_ns) ++fit.missed;
      continue;
    }
    const ShiftPair pair{i, static_cast<uint32_t>(found), x, end - places[found].end_ns};
    if (before.pair != SIZE_MAX && fit.pairs[before.pair].place == found) {
      // Of two that are nearest to one, the nearer.
      ++fit.missed;
      if (std::abs(fit.pairs[before.pair].off) > std::abs(pair.off)) fit.pairs[before.pair] = pair;
      continue;
    }
    before = {found, fit.pairs.size()};
    fit.pairs.push_back(pair);
  }
}

// A line through what is off, its drift as small as the ends allow; what is far off does not pull.
void ShiftJudge::straighten(ShiftFit& fit, Drift drift) {
  constexpr int kTimes = 4;
  constexpr double kLeastFitNoiseNs = 500;
  if (fit.pairs.empty()) return;
  std::vector<double> offs;
  for (const ShiftPair& each : fit.pairs) offs.push_back(each.off);
  double a = middle_value(offs);
  double b = 0;
  for (int time = 0; time < kTimes && drift == Drift::kAny; ++time) {
    offs.clear();
    for (const ShiftPair& each : fit.pairs) offs.push_back(std::abs(each.off - a - b * each.x));
    const double noise = std::max(kLeastFitNoiseNs, 1.4826 * middle_value(offs));
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (const ShiftPair& each : fit.pairs) {
      const double deviations = (each.off - a - b * each.x) / (2 * noise);
      const double weight = 1 / (1 + deviations * deviations);
      w += weight, wx += weight * each.x, wy += weight * each.off;
      wxx += weight * each.x * each.x, wxy += weight * each.x * each.off;
    }
    const double prior = noise * noise / (kUsualClockDrift * kUsualClockDrift);
    b = std::clamp((wxy - wx * wy / w) / (wxx - wx * wx / w + prior), -kMostClockDrift - fit.drift,
                   kMostClockDrift - fit.drift);
    a = (wy - b * wx) / w;
  }
  fit.ahead_ns += a;
  fit.drift += b;
  for (ShiftPair& each : fit.pairs) each.off -= a + b * each.x;
}

void ShiftJudge::measure(ShiftFit& fit) {
  const size_t n = fit.pairs.size();
  if (n < 2) return;
  std::vector<double> squares;
  for (const ShiftPair& each : fit.pairs) squares.push_back(each.off * each.off);
  std::sort(squares.begin(), squares.end());
  const size_t counted = n - n / kLeftOutOneOf;
  double sum = std::accumulate(squares.begin(), squares.begin() + static_cast<std::ptrdiff_t>(counted), 0.0);
  fit.left_out = static_cast<double>(n / kLeftOutOneOf);
  fit.variance = std::max(kLeastVariance, sum / std::max(0.5, fit.count() - fit.left_out - 1.5));

  double longest = 0;
  for (size_t i = 1; i < n; ++i) longest = std::max(longest, fit.pairs[i].x - fit.pairs[i - 1].x);
  std::vector<double> means;
  double count = 0;
  double before = -INFINITY;
  for (const ShiftPair& each : fit.pairs) {
    if (each.off * each.off > squares[counted - 1]) continue;
    if (each.x - before > 0.5 * longest) {
      means.push_back(0);
      count = 0;
    }
    before = each.x;
    ++count;
    means.back() += (each.off - means.back()) / count;
  }
  fit.bursts = means.size();
  sum = 0;
  for (size_t i = 1; i < means.size(); ++i) sum += (means[i] - means[i - 1]) * (means[i] - means[i - 1]);
  // The mean of several ends is known better than one.
  const double least = kLeastVariance * static_cast<double>(means.size()) / static_cast<double>(counted);
  fit.burst_variance = std::max(least, sum / std::max(1.0, static_cast<double>(means.size()) - 1));
}

// No rank ends before the last one has come and the data has moved: each collective allows the clock to be ahead by so
// much more or less. Those that are in no way of most others are contradicted.
void ShiftJudge::contradict(ShiftFit& fit) const {
  constexpr double kLeastSlackNs = 2'500;  // kernels start and end some microseconds beside what clocks say
  const double slack = std::max(kLeastSlackNs, 0.25 * std::sqrt(fit.variance));
  std::vector<std::pair<double, int>> bounds;  // where an allowed range begins and ends
  for (const ShiftPair& each : fit.pairs) {
    const Seen& seen = seen_[each.seen];
    if (seen.least_ns < 0) continue;
    const Place& place = (*lists_[seen.list])[each.place];
    const double ahead = fit.ahead_ns + fit.drift * each.x;
    const double low = seen.last_start_ns - ahead + seen.least_ns - place.first_end_ns - slack;
    const double high = seen.first_end_ns - ahead - place.last_start_ns - seen.least_ns + slack;
    ++fit.synchronized;
    if (low > high) continue;
    bounds.emplace_back(low, 0);
    bounds.emplace_back(high, 1);
  }
  std::sort(bounds.begin(), bounds.end());
  size_t open = 0;
  size_t most = 0;
  for (const auto& [ns, ends] : bounds) {
    open += ends == 0 ? 1 : 0;
    most = std::max(most, open);
    open -= ends == 0 ? 0 : 1;
  }
  fit.contradicted = fit.synchronized - most;
}

void ShiftJudge::measure_arrivals(ShiftFit& fit) const {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> lengths;  // by group and signature
  for (const ShiftPair& each : fit.pairs) {
    const Seen& seen = seen_[each.seen];
    const Place& place = (*lists_[seen.list])[each.place];
    if (seen.least_ns < 0 || int64_t{seen.members} + place.members != sizes_[seen.list]) continue;
    const double ahead = fit.ahead_ns + fit.drift * each.x;
    lengths[{seen.list, seen.signature}].push_back(std::min(seen.first_end_ns - ahead, place.first_end_ns) -
                                                   std::max(seen.last_start_ns - ahead, place.last_start_ns));
  }
  std::vector<double> squares;
  for (auto& [kind, all] : lengths) {
    const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
    for (const double each : all) squares.push_back((each - mean) * (each - mean));
    fit.arrival_degrees += static_cast<double>(all.size()) - 1;
  }
  const size_t left_out = squares.size() / kLeftOutOneOf;
  fit.arrival_degrees = std::max(0.0, fit.arrival_degrees - static_cast<double>(left_out));
  std::sort(squares.begin(), squares.end());
  const double sum = std::accumulate(squares.begin(), squares.end() - static_cast<std::ptrdiff_t>(left_out), 0.0);
  fit.arrival_variance = std::max(kLeastVariance, sum / std::max(1.0, fit.arrival_degrees));
}

ShiftFit ShiftJudge::judge(double ahead_ns, Drift drift) const {
  ShiftFit fit{.ahead_ns = ahead_ns};
  for (const Drift each : {Drift::kNone, drift, drift}) {
    lay_on(fit);
    straighten(fit, each);
  }
  measure(fit);
  contradict(fit);
  measure_arrivals(fit);
  return fit;
}

EndNoise ShiftJudge::noise_of(const ShiftFit& fit) const {
  EndNoise out{.places_ns = std::sqrt(fit.variance)};
  std::vector<double> squares;
  for (const ShiftPair& each : fit.pairs) {
    const Seen& seen = seen_[each.seen];
    const double members = (*lists_[seen.list])[each.place].members;
    squares.push_back(each.off * each.off / (0.5 / seen.members + 0.5 / members));
  }
  std::sort(squares.begin(), squares.end());
  double sum = 0;
  const double count = fit.count() - fit.left_out;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) sum += squares[i];
  out.ranks_ns = std::sqrt(sum / std::max(1.0, count - 1.5));
  return out;
}

size_t ShiftJudge::always_inside() const {
  if (!intake_.has_unix_times) return 0;
  size_t out = SIZE_MAX;
  for (const double ahead : {-kMostClockOffsetNs, kMostClockOffsetNs}) {
    const auto inside = std::ranges::count_if(seen_, [&](const Seen& each) {
      const Places& places = *lists_[each.list];
      return each.end_ns - ahead >= places.front().end_ns && each.end_ns - ahead <= places.back().end_ns;
    });
    out = std::min(out, static_cast<size_t>(inside));
  }
  return out;
}

bool is_same_shift(const ShiftFit& a, const ShiftFit& b) {
  constexpr double kFarNs = 10'000'000;
  if (std::abs(a.ahead_ns - b.ahead_ns) > kFarNs) return false;
  size_t same = 0;
  size_t j = 0;
  for (const ShiftPair& each : a.pairs) {
    while (j < b.pairs.size() && b.pairs[j].seen < each.seen) ++j;
    if (j == b.pairs.size()) break;
    same += b.pairs[j].seen == each.seen && b.pairs[j].place == each.place ? 1 : 0;
  }
  return 2 * same >= std::min(a.pairs.size(), b.pairs.size());
}

double independent_share(const ShiftFit& fit) {
  const double most = 3 * std::sqrt(fit.variance);
  double own = 0;
  double next = 0;
  for (size_t i = 0; i < fit.pairs.size(); ++i) {
    const double off = std::clamp(fit.pairs[i].off, -most, most);
    own += off * off;
    if (i > 0) next += off * std::clamp(fit.pairs[i - 1].off, -most, most);
  }
  const double correlation = own > 0 ? std::clamp(next / own, 0.0, 0.95) : 0;
  return (1 - correlation) / (1 + correlation);
}

}  // namespace firelane::ranks
