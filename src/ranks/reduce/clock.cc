#include "ranks/reduce/clock.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

namespace firelane::ranks {

namespace {

constexpr size_t kMostPairedRanks = 4;  // of groups whose clocks are all compared with each other
constexpr size_t kBins = 32;
constexpr size_t kKept = 12;           // ends of the shortest collectives in a bin
constexpr double kMostDrift = 200e-6;  // crystals are within 50 ppm, two of them within 100
constexpr double kUsualDrift = 50e-6;
constexpr double kLeastNoiseNs = 1000;
constexpr int kRounds = 5;

struct EndSample {
  double length_ns = 0;  // of the one that came last: nearly the transfer
  double time_ns = 0;
  double difference_ns = 0;
};

struct Bin {
  LinePoint low{.low = -INFINITY};  // the tightest of the bin, with its own time
  LinePoint high{.high = INFINITY};
  std::vector<EndSample> ends;  // shortest first
};

struct PairData {
  std::vector<Bin> bins = std::vector<Bin>(kBins);
  int64_t count = 0;
};

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void keep_end(Bin& bin, const EndSample& sample) {
  if (bin.ends.size() == kKept && bin.ends.back().length_ns <= sample.length_ns) return;
  const auto at = std::upper_bound(bin.ends.begin(), bin.ends.end(), sample.length_ns,
                                   [](double length, const EndSample& s) { return length < s.length_ns; });
  bin.ends.insert(at, sample);
  if (bin.ends.size() > kKept) bin.ends.pop_back();
}

struct Point {
  double a = 0;
  double b = 0;
};

// The side of a convex polygon where sign * (a + b x - limit) <= 0.
void clip(std::vector<Point>& polygon, double x, double limit, double sign) {
  std::vector<Point> out;
  const auto value = [&](const Point& p) { return sign * (p.a + p.b * x - limit); };
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point& p = polygon[i];
    const Point& q = polygon[(i + 1) % polygon.size()];
    const double vp = value(p);
    const double vq = value(q);
    if (vp <= 0) out.push_back(p);
    if ((vp < 0 && vq > 0) || (vp > 0 && vq < 0)) {
      const double t = vp / (vp - vq);
      out.push_back({p.a + t * (q.a - p.a), p.b + t * (q.b - p.b)});
    }
  }
  polygon = std::move(out);
}

// The line of the polygon that lies nearest, by what lines are at x0 and x1.
Point nearest_inside(const std::vector<Point>& polygon, const Point& line, double x0, double x1) {
  Point best = polygon[0];
  double least = INFINITY;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point& p = polygon[i];
    const Point& q = polygon[(i + 1) % polygon.size()];
    const auto at = [](const Point& l, double x) { return l.a + l.b * x; };
    const double along[] = {at(q, x0) - at(p, x0), at(q, x1) - at(p, x1)};
    const double to[] = {at(line, x0) - at(p, x0), at(line, x1) - at(p, x1)};
    const double length = along[0] * along[0] + along[1] * along[1];
    const double t = length > 0 ? std::clamp((along[0] * to[0] + along[1] * to[1]) / length, 0.0, 1.0) : 0;
    const double off = std::hypot(to[0] - t * along[0], to[1] - t * along[1]);
    if (off >= least) continue;
    least = off;
    best = {p.a + t * (q.a - p.a), p.b + t * (q.b - p.b)};
  }
  return best;
}

struct Line {
  double a = 0;
  double b = 0;
  double spread = 0;
};

// Through the medians of bins, so that single late ends do not pull; again without those far off.
Line line_through(const std::vector<Bin>& bins, double zero_ns) {
  struct Sample {
    double x, y, weight;
  };
  std::vector<Sample> samples;
  for (const Bin& bin : bins) {
    if (bin.ends.empty()) continue;
    std::vector<double> x;
    std::vector<double> y;
    for (const EndSample& end : bin.ends) {
      x.push_back(end.time_ns - zero_ns);
      y.push_back(end.difference_ns);
    }
    samples.push_back({median_of(x), median_of(y), static_cast<double>(bin.ends.size())});
  }
  Line line;
  for (int round = 0; round < kRounds; ++round) {
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (const Sample& s : samples) {
      const double off = std::abs(s.y - line.a - line.b * s.x);
      const double weight = round == 0 ? s.weight : s.weight / (1 + std::pow(off / (line.spread + 1000), 2));
      w += weight;
      wx += weight * s.x;
      wy += weight * s.y;
      wxx += weight * s.x * s.x;
      wxy += weight * s.x * s.y;
    }
    if (w <= 0) return line;
    // As much drift as the ends prove: few of them, or a short recording, cannot tell it from noise.
    const double noise = std::max(kLeastNoiseNs, 1.4826 * line.spread);
    const double centred_xx = wxx - wx * wx / w;
    const double centred_xy = wxy - wx * wy / w;
    const double prior = noise * noise / (kUsualDrift * kUsualDrift);
    line.b = std::clamp(centred_xy / (centred_xx + prior), -kMostDrift, kMostDrift);
    line.a = (wy - line.b * wx) / w;
    std::vector<double> off;
    for (const Bin& bin : bins) {
      for (const EndSample& end : bin.ends) {
        off.push_back(std::abs(end.difference_ns - line.a - line.b * (end.time_ns - zero_ns)));
      }
    }
    line.spread = median_of(off);
  }
  return line;
}

// Latest start and earliest end of each clock in a collective.
struct DomainTimes {
  uint32_t domain = 0;
  int64_t last_start = INT64_MIN;
  int64_t first_end = INT64_MAX;
  double length_ns = 0;
};

class Fitter {
 public:
  Fitter(const Intake& intake, const Matches& matches) : intake_(intake), matches_(matches) {}

  Clocks run() {
    out_.domains.resize(intake_.domains.size());
    std::vector<size_t> rows(intake_.domains.size(), 0);
    own_.resize(intake_.domains.size());
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    int64_t grain = 1;
    for (const RankRows& rank : intake_.ranks) {
      rows[rank.domain] += rank.rows.size();
      grain = std::max(grain, rank.part.clock_grain_ns);
      if (rank.rows.empty()) continue;
      first = std::min(first, rank.rows.front().start_ns);
      last = std::max(last, rank.rows.back().end_ns);
      Window& own = own_[rank.domain];
      own.first = std::min(own.first, static_cast<double>(rank.rows.front().start_ns));
      own.last = std::max(own.last, static_cast<double>(rank.rows.back().end_ns));
    }
    if (intake_.domains.empty() || first > last) return out_;
    first_ = static_cast<double>(first);
    length_ = std::max(1.0, static_cast<double>(last - first));
    slack_ = 500 + 2 * static_cast<double>(grain);
    out_.reference = static_cast<uint32_t>(std::max_element(rows.begin(), rows.end()) - rows.begin());
    for (DomainClock& clock : out_.domains) clock.at_ns = first + (last - first) / 2;
    out_.domains[out_.reference].known = true;
    everywhere_.assign(intake_.domains.size(), 0);
    find_meeting_groups();
    // Clocks that share a collective with a known one become known, then those that share one with these.
    const auto is_known = [](const DomainClock& clock) { return clock.known; };
    while (!std::all_of(out_.domains.begin(), out_.domains.end(), is_known) && add_layer()) {
    }
    tighten();
    return out_;
  }

 private:
  // Groups of one machine, which most collectives belong to, say nothing about clocks.
  void find_meeting_groups() {
    for (const JobGroup& group : intake_.groups) {
      meets_others_.push_back(std::any_of(group.members.begin(), group.members.end(), [&](uint32_t rank) {
        return intake_.ranks[rank].domain != intake_.ranks[group.members[0]].domain;
      }));
    }
  }

  bool add_layer() {
    std::vector<PairData> pairs(intake_.domains.size());
    std::vector<uint32_t> base(intake_.domains.size(), UINT32_MAX);  // the known clock that each is compared with
    std::vector<DomainTimes> times;
    for (const Instance& instance : matches_.instances) {
      if (!meets_others_[instance.group] || !synchronizes(intake_.signatures[instance.signature].op)) continue;
      gather(instance, times);
      if (times.size() < 2) continue;
      const DomainTimes* from = nullptr;
      for (const DomainTimes& each : times) {
        if (out_.domains[each.domain].known && (from == nullptr || better(each.domain, from->domain))) from = &each;
      }
      if (from == nullptr) continue;
      for (const DomainTimes& each : times) {
        if (out_.domains[each.domain].known) continue;
        uint32_t& chosen = base[each.domain];
        if (chosen == UINT32_MAX) chosen = from->domain;
        if (chosen != from->domain) continue;
        add(*from, each, pairs[each.domain]);
      }
    }
    bool any = false;
    for (uint32_t d = 0; d < pairs.size(); ++d) {
      if (pairs[d].count == 0) continue;
      solve(d, base[d], pairs[d]);
      any = true;
    }
    return any;
  }

  // Nearer to the reference first.
  bool better(uint32_t a, uint32_t b) const {
    return everywhere_[a] != everywhere_[b] ? everywhere_[a] < everywhere_[b] : a < b;
  }

  void gather(const Instance& instance, std::vector<DomainTimes>& times) const {
    times.clear();
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      fetch_ahead(intake_, matches_, i);
      const Member& member = matches_.members[i];
      const RankRows& rank = intake_.ranks[member.rank];
      const CollectiveRow& row = rank.rows[member.row];
      // Ranks stand in order, those of a host together: nearly always the last one.
      DomainTimes* at = nullptr;
      for (size_t t = times.size(); t-- > 0 && at == nullptr;) {
        if (times[t].domain == rank.domain) at = &times[t];
        if (times.size() - t > 4) break;
      }
      if (at == nullptr) at = &times.emplace_back(DomainTimes{.domain = rank.domain});
      if (row.start_ns > at->last_start) at->length_ns = static_cast<double>(row.end_ns - row.start_ns);
      at->last_start = std::max(at->last_start, row.start_ns);
      at->first_end = std::min(at->first_end, row.end_ns);
    }
  }

  void add(const DomainTimes& a, const DomainTimes& b, PairData& pair) const {
    const auto time = static_cast<double>(b.first_end);
    Bin& bin = bin_at(pair, time);
    const LinePoint point{.x = time,
                          .low = static_cast<double>(b.last_start - a.first_end),
                          .high = static_cast<double>(b.first_end - a.last_start)};
    if (point.low > bin.low.low) bin.low = point;
    if (point.high < bin.high.high) bin.high = point;
    keep_end(bin, {std::min(a.length_ns, b.length_ns), time, static_cast<double>(b.first_end - a.first_end)});
    ++pair.count;
  }

  // When a clock was read: between its first and its last collective.
  struct Window {
    double first = INFINITY;
    double last = -INFINITY;
  };

  // The clock of `pair`'s second domain against its first, bounded over the whole recording; `own`: over this as well.
  LineBound line_of(const PairData& pair, double* spread_ns, const Window* own = nullptr,
                    double* own_bound = nullptr) const {
    const auto zero = static_cast<double>(out_.domains[0].at_ns);
    const Line line = line_through(pair.bins, zero);
    std::vector<LinePoint> points;
    for (const Bin& bin : pair.bins) {
      if (std::isfinite(bin.low.low)) points.push_back({bin.low.x - zero, bin.low.low - slack_, INFINITY});
      if (std::isfinite(bin.high.high)) points.push_back({bin.high.x - zero, -INFINITY, bin.high.high + slack_});
    }
    if (spread_ns != nullptr) *spread_ns = line.spread;
    const LineBound out = bound_line(points, line.a, line.b, kMostDrift, first_ - zero, first_ + length_ - zero);
    if (own != nullptr) {
      *own_bound = bound_line(points, out.a, out.b, kMostDrift, own->first - zero, own->last - zero).bound;
    }
    return out;
  }

  void solve(uint32_t domain, uint32_t base_domain, const PairData& pair) {
    DomainClock& clock = out_.domains[domain];
    const DomainClock& base = out_.domains[base_domain];
    double own_bound = 0;
    const LineBound bounded = line_of(pair, &clock.spread_ns, &own_[domain], &own_bound);
    clock.known = true;
    clock.consistent = bounded.feasible;
    clock.offset_ns = base.offset_ns + bounded.a;
    clock.drift = base.drift + bounded.b;
    everywhere_[domain] = everywhere_[base_domain] + bounded.bound;
    clock.bound_ns = everywhere_[base_domain] + own_bound;
    clock.collectives = pair.count;
    if (bounded.feasible) edges_.push_back({base_domain, domain, bounded});
  }

  // A way through other clocks may bound an error better than the collectives that two clocks share: stages of a
  // pipeline hand over to their neighbours all the time, and meet all others once a step.
  struct Edge {
    uint32_t from = 0;
    uint32_t to = 0;
    LineBound line;
  };

  void tighten() {
    std::map<std::pair<uint32_t, uint32_t>, PairData> pairs;
    std::vector<DomainTimes> times;
    for (const Instance& instance : matches_.instances) {
      const JobGroup& group = intake_.groups[instance.group];
      if (!meets_others_[instance.group]) continue;
      if (group.point_to_point) {
        add_pair(instance, pairs);
      } else if (group.members.size() <= kMostPairedRanks && synchronizes(intake_.signatures[instance.signature].op)) {
        gather(instance, times);
        for (size_t a = 0; a < times.size(); ++a) {
          for (size_t b = a + 1; b < times.size(); ++b)
            add(times[a], times[b], pairs[{times[a].domain, times[b].domain}]);
        }
      }
    }
    for (const auto& [domains, pair] : pairs) {
      const LineBound line = line_of(pair, nullptr);
      if (line.feasible) edges_.push_back({domains.first, domains.second, line});
    }
    std::vector<std::vector<std::pair<uint32_t, bool>>> at(out_.domains.size());  // edge, forwards
    for (uint32_t e = 0; e < edges_.size(); ++e) {
      at[edges_[e].from].emplace_back(e, true);
      at[edges_[e].to].emplace_back(e, false);
    }
    struct Reached {
      double bound = INFINITY;
      double a = 0;
      double b = 0;
    };
    std::vector<Reached> reached(out_.domains.size());
    reached[out_.reference].bound = 0;
    using Entry = std::pair<double, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.push({0, out_.reference});
    while (!queue.empty()) {
      const auto [bound, domain] = queue.top();
      queue.pop();
      if (bound > reached[domain].bound) continue;
      for (const auto& [e, forwards] : at[domain]) {
        const Edge& edge = edges_[e];
        const uint32_t next = forwards ? edge.to : edge.from;
        const double sign = forwards ? 1 : -1;
        if (bound + edge.line.bound >= reached[next].bound) continue;
        reached[next] = {bound + edge.line.bound, reached[domain].a + sign * edge.line.a,
                         reached[domain].b + sign * edge.line.b};
        queue.push({reached[next].bound, next});
      }
    }
    for (uint32_t d = 0; d < reached.size(); ++d) {
      DomainClock& clock = out_.domains[d];
      if (!clock.known || !clock.consistent || !std::isfinite(reached[d].bound)) continue;
      // The way's line differs from the estimate: by that much more.
      double apart = 0;
      const auto zero = static_cast<double>(clock.at_ns);
      for (const double x : {own_[d].first - zero, own_[d].last - zero}) {
        apart = std::max(apart, std::abs(reached[d].a - clock.offset_ns + (reached[d].b - clock.drift) * x));
      }
      clock.bound_ns = std::min(clock.bound_ns, reached[d].bound + apart);
    }
  }

  // A receive does not end before the send has begun; the other way round nothing is certain.
  void add_pair(const Instance& instance, std::map<std::pair<uint32_t, uint32_t>, PairData>& pairs) const {
    if (instance.end - instance.begin != 2) return;
    const Member* members = &matches_.members[instance.begin];
    const bool first_sends = intake_.ranks[members[0].rank].part.rank == intake_.groups[instance.group].sender;
    const Member& from = members[first_sends ? 0 : 1];
    const Member& to = members[first_sends ? 1 : 0];
    const uint32_t a = intake_.ranks[from.rank].domain;
    const uint32_t b = intake_.ranks[to.rank].domain;
    if (a == b) return;
    const CollectiveRow& send = intake_.ranks[from.rank].rows[from.row];
    const CollectiveRow& receive = intake_.ranks[to.rank].rows[to.row];
    const double most =
        static_cast<double>(receive.end_ns - send.start_ns);  // clock b ahead of clock a by at most this
    const bool swapped = a > b;
    PairData& pair = pairs[swapped ? std::pair{b, a} : std::pair{a, b}];
    const auto time = static_cast<double>(receive.end_ns);
    Bin& bin = bin_at(pair, time);
    if (swapped) {
      if (-most > bin.low.low) bin.low = {.x = time, .low = -most};
    } else if (most < bin.high.high) {
      bin.high = {.x = time, .high = most};
    }
    const auto apart = static_cast<double>(receive.end_ns - send.end_ns);
    keep_end(bin, {static_cast<double>(std::min(receive.end_ns - receive.start_ns, send.end_ns - send.start_ns)), time,
                   swapped ? -apart : apart});
    ++pair.count;
  }

  Bin& bin_at(PairData& pair, double time) const {
    return pair.bins[std::min(kBins - 1, static_cast<size_t>(std::max(0.0, (time - first_) / length_ * kBins)))];
  }

  const Intake& intake_;
  const Matches& matches_;
  Clocks out_;
  std::vector<bool> meets_others_;  // by group: its ranks have more than one clock
  std::vector<Edge> edges_;
  std::vector<Window> own_;         // by domain
  std::vector<double> everywhere_;  // by domain: its error is at most this, over the whole recording
  double first_ = 0;
  double length_ = 1;
  double slack_ = 0;
};

}  // namespace

LineBound bound_line(const std::vector<LinePoint>& points, double a, double b, double most_b, double x0, double x1) {
  constexpr double kFar = 1e13;
  std::vector<Point> polygon = {{-kFar, -most_b}, {kFar, -most_b}, {kFar, most_b}, {-kFar, most_b}};
  for (const LinePoint& point : points) {
    if (std::isfinite(point.low)) clip(polygon, point.x, point.low, -1);
    if (std::isfinite(point.high)) clip(polygon, point.x, point.high, +1);
  }
  LineBound out{.a = a, .b = b};
  if (polygon.empty()) {  // by how much the estimate is contradicted, at least
    for (const LinePoint& point : points) {
      const double y = a + b * point.x;
      if (std::isfinite(point.low)) out.bound = std::max(out.bound, point.low - y);
      if (std::isfinite(point.high)) out.bound = std::max(out.bound, y - point.high);
    }
    return out;
  }
  out.feasible = true;
  const bool inside = std::all_of(points.begin(), points.end(), [&](const LinePoint& p) {
    const double y = a + b * p.x;
    return y >= p.low && y <= p.high;
  });
  if (!inside) {
    const Point at = nearest_inside(polygon, {a, b}, x0, x1);
    out.a = at.a;
    out.b = at.b;
  }
  for (const Point& p : polygon) {
    for (const double x : {x0, x1}) out.bound = std::max(out.bound, std::abs(p.a - out.a + (p.b - out.b) * x));
  }
  return out;
}

Clocks fit_clocks(const Intake& intake, const Matches& matches) { return Fitter(intake, matches).run(); }

}  // namespace firelane::ranks
