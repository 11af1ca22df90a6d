#include "ranks/reduce/axis.h"

#include <algorithm>

namespace firelane::ranks {

namespace {

constexpr double kLeastReachNs = 30'000;
constexpr size_t kMostJudgedRows = 4096;  // of a machine

}  // namespace

double Axis::reach_ns(double noise_ns) { return std::max(kLeastReachNs, 6 * noise_ns); }

void Axis::find_members() {
  of_domain.resize(intake.domains.size());
  for (uint32_t o = 0; o < open.size(); ++o) {
    for (uint32_t m = 0; m < open[o].instance.size(); ++m) of_domain[domain_of(open[o], m)].push_back({o, m});
  }
  first_rank.assign(intake.domains.size(), UINT32_MAX);
  for (uint32_t r = 0; r < intake.ranks.size(); ++r) {
    uint32_t& first = first_rank[intake.ranks[r].domain];
    first = std::min(first, r);
  }
}

Axis::Nearest Axis::nearest(const std::vector<Place>& among, uint32_t signature, double end_ns,
                            double within_ns) const {
  Nearest out;
  auto at = std::lower_bound(among.begin(), among.end(), end_ns - within_ns,
                             [](const Place& place, double ns) { return place.end_ns < ns; });
  for (; at != among.end() && at->end_ns <= end_ns + within_ns; ++at) {
    if (!compatible(at->signature, signature)) continue;
    const double distance = std::abs(at->end_ns - end_ns);
    if (distance < out.distance_ns) {
      out.next_ns = out.distance_ns;
      out.distance_ns = distance;
      out.place = &*at;
    } else {
      out.next_ns = std::min(out.next_ns, distance);
    }
  }
  return out;
}

void Axis::add_covered(size_t o, size_t member) {
  const size_t rows = open[o].instance[member].size();
  if (rows == 0) return;
  const uint32_t domain = domain_of(open[o], member);
  Span span{on_axis(domain, row_of(open[o], member, 0).end_ns),
            on_axis(domain, row_of(open[o], member, rows - 1).end_ns)};
  std::erase_if(covered[o], [&](const Span& each) {
    if (each.first_ns > span.last_ns || each.last_ns < span.first_ns) return false;
    span = {std::min(each.first_ns, span.first_ns), std::max(each.last_ns, span.last_ns)};
    return true;
  });
  covered[o].push_back(span);
}

bool Axis::is_covered(size_t o, double first_ns, double last_ns) const {
  return std::ranges::any_of(covered[o],
                             [&](const Span& each) { return each.first_ns <= first_ns && each.last_ns >= last_ns; });
}

void Axis::add_times(Place& place, uint32_t domain, const CollectiveRow& row) const {
  place.last_start_ns = std::max(place.last_start_ns, on_axis(domain, row.start_ns));
  place.first_end_ns = std::min(place.first_end_ns, on_axis(domain, row.end_ns));
  uint8_t c = 0;
  while (c < place.clock_count && place.clocks[c].domain != domain) ++c;
  if (c == Place::kMostClocks) return;
  if (c == place.clock_count) place.clocks[place.clock_count++] = {.domain = domain};
  ClockTimes& times = place.clocks[c];
  times.last_start_ns = std::max(times.last_start_ns, static_cast<double>(row.start_ns));
  times.first_end_ns = std::min(times.first_end_ns, static_cast<double>(row.end_ns));
}

std::vector<OpenRow> Axis::open_rows(uint32_t domain) const {
  std::vector<OpenRow> out;
  uint32_t slots = 0;
  uint32_t before = UINT32_MAX;
  uint32_t first_slot = 0;
  for (const auto& [o, m] : of_domain[domain]) {
    const Laid& laid = open[o];
    // The sending and the receiving side need not end together.
    if (places[o].empty() || intake.groups[laid.group].point_to_point || !on_device(laid, m)) continue;
    if (o != before) {
      before = o;
      first_slot = slots;
      slots += static_cast<uint32_t>(places[o].size());
    }
    for (uint32_t i = 0; i < laid.instance[m].size(); ++i) {
      const CollectiveRow& row = row_of(laid, m, i);
      out.push_back({o, m, i, first_slot, group_row(laid, m, i).signature, static_cast<double>(row.start_ns),
                     static_cast<double>(row.end_ns)});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const OpenRow& a, const OpenRow& b) { return a.end_ns < b.end_ns; });
  if (out.size() > kMostJudgedRows) {
    const auto first = out.begin() + static_cast<std::ptrdiff_t>((out.size() - kMostJudgedRows) / 2);
    out = std::vector<OpenRow>(first, first + kMostJudgedRows);
  }
  return out;
}

}  // namespace firelane::ranks
