#include "ranks/reduce/axis.h"

#include <algorithm>

namespace firelane::ranks {

namespace {

constexpr double kLeastReachNs = 30'000;
constexpr size_t kMostJudgedRows = 4096;  // of a machine

}  // namespace

double Axis::reach_ns() const { return std::max(kLeastReachNs, 6 * noise_ns); }

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

std::vector<OpenRow> Axis::open_rows(uint32_t domain) const {
  std::vector<OpenRow> out;
  for (uint32_t o = 0; o < open.size(); ++o) {
    const Laid& laid = open[o];
    // The sending and the receiving side need not end together.
    if (places[o].empty() || intake.groups[laid.group].point_to_point) continue;
    for (uint32_t m = 0; m < laid.instance.size(); ++m) {
      if (domain_of(laid, m) != domain || !on_device(laid, m)) continue;
      for (uint32_t i = 0; i < laid.instance[m].size(); ++i) {
        out.push_back({o, m, i, group_row(laid, m, i).signature, static_cast<double>(row_of(laid, m, i).end_ns)});
      }
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
