#include "ranks/reduce/places.h"

#include <algorithm>

namespace firelane::ranks {

namespace {

constexpr uint32_t kNobody = UINT32_MAX;

bool ends_before(const Place& a, const Place& b) { return a.end_ns < b.end_ns; }

double low_value(std::vector<double>& values) {
  constexpr size_t kOneOf = 100;
  if (values.empty()) return INFINITY;
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(values.size() / kOneOf);
  std::nth_element(values.begin(), low, values.end());
  return *low;
}

// When the collective before this one ended. Those within reach may be the same one.
double end_before(const Places& places, size_t at, double reach_ns) {
  for (size_t before = at; before-- > 0;) {
    if (places[before].end_ns < places[at].end_ns - reach_ns) return places[before].first_end_ns;
  }
  return -INFINITY;
}

// Where each of the others goes: index in `places`, or kNobody.
std::vector<uint32_t> partners(const Intake& intake, const Places& places, const Places& others, const Spacing& spacing,
                               const EndNoise& noise) {
  constexpr uint32_t kSeveral = UINT32_MAX - 1;
  constexpr double kLeastReachNs = 30'000;
  const auto reach_of = [&](const Place& a, const Place& b) {
    const double deviation = std::max(noise.places_ns, noise.ranks_ns * std::sqrt(0.5 / a.members + 0.5 / b.members));
    const bool bare = intake.signatures[a.signature].size_key < 0 || intake.signatures[b.signature].size_key < 0;
    const double apart = bare ? spacing.any_ns : spacing.same_ns;
    return std::min(std::max(kLeastReachNs, 6 * deviation), apart - 4 * deviation);
  };
  const double most_ns = std::max({kLeastReachNs, 6 * noise.places_ns, 6 * noise.ranks_ns});
  std::vector<uint32_t> taken(places.size(), kNobody);  // by which of the others
  std::vector<uint32_t> out(others.size(), kNobody);
  size_t from = 0;
  for (uint32_t i = 0; i < others.size(); ++i) {
    const Place& each = others[i];
    while (from < places.size() && places[from].end_ns < each.end_ns - 4 * most_ns) ++from;
    double nearest = INFINITY;
    double next = INFINITY;
    uint32_t found = kNobody;
    for (size_t at = from; at < places.size() && places[at].end_ns <= each.end_ns + 4 * most_ns; ++at) {
      if (!compatible(intake, places[at].signature, each.signature)) continue;
      const double distance = std::abs(places[at].end_ns - each.end_ns);
      if (distance < nearest) {
        next = nearest;
        nearest = distance;
        found = static_cast<uint32_t>(at);
      } else {
        next = std::min(next, distance);
      }
    }
    if (found == kNobody) continue;
    const Place& place = places[found];
    if (nearest > reach_of(place, each) || next < 3 * nearest) continue;
    // No rank ends before another has begun, nor begins one before the one before has ended.
    if (place.last_start_ns > each.first_end_ns + most_ns || each.last_start_ns > place.first_end_ns + most_ns)
      continue;
    const double reach = reach_of(place, each);
    if (each.first_start_ns < end_before(places, found, reach) - most_ns ||
        place.first_start_ns < end_before(others, i, reach) - most_ns) {
      continue;
    }
    if (taken[found] == kNobody) {
      taken[found] = i;
      out[i] = found;
    } else if (taken[found] != kSeveral) {
      out[taken[found]] = kNobody;  // neither of the two
      taken[found] = kSeveral;
    }
  }
  return out;
}

}  // namespace

Spacing spacing_of(const Intake& intake, const Places& rows_of_rank) {
  constexpr size_t kMostLookedAt = 512;
  std::vector<double> same;
  std::vector<double> any;
  for (size_t i = 0; i < rows_of_rank.size() && i < kMostLookedAt; ++i) {
    bool seen_any = false;
    constexpr size_t kMostAhead = 64;
    for (size_t j = i + 1; j < std::min(rows_of_rank.size(), i + kMostAhead); ++j) {
      if (intake.signatures[rows_of_rank[j].signature].op != intake.signatures[rows_of_rank[i].signature].op) continue;
      if (!seen_any) any.push_back(rows_of_rank[j].end_ns - rows_of_rank[i].end_ns);
      seen_any = true;
      if (rows_of_rank[j].signature != rows_of_rank[i].signature) continue;
      same.push_back(rows_of_rank[j].end_ns - rows_of_rank[i].end_ns);
      break;
    }
  }
  return {low_value(same), low_value(any)};
}

std::vector<uint32_t> merge_places(const Intake& intake, Places& places, const Places& others, const Spacing& spacing,
                                   const EndNoise& noise, uint32_t* next_found) {
  std::vector<uint32_t> out = partners(intake, places, others, spacing, noise);
  const auto count = static_cast<std::ptrdiff_t>(places.size());
  for (size_t i = 0; i < others.size(); ++i) {
    const Place& each = others[i];
    if (out[i] == kNobody) {
      places.push_back(each);
      if (next_found != nullptr) places.back().found = (*next_found)++;
      out[i] = places.back().found;
      continue;
    }
    Place& place = places[out[i]];
    out[i] = place.found;
    place.end_ns = (place.end_ns * place.members + each.end_ns * each.members) / (place.members + each.members);
    place.members += each.members;
    place.first_end_ns = std::min(place.first_end_ns, each.first_end_ns);
    place.first_start_ns = std::min(place.first_start_ns, each.first_start_ns);
    place.last_start_ns = std::max(place.last_start_ns, each.last_start_ns);
    if (intake.signatures[place.signature].size_key < 0) place.signature = each.signature;
  }
  // Means may have passed each other.
  if (!std::is_sorted(places.begin(), places.begin() + count, ends_before)) {
    std::stable_sort(places.begin(), places.begin() + count, ends_before);
  }
  std::inplace_merge(places.begin(), places.begin() + count, places.end(), ends_before);
  return out;
}

size_t nearest_place(const Intake& intake, const Places& places, uint32_t signature, double end_ns, double within_ns,
                     size_t from) {
  size_t right = std::min(from, places.size());
  while (right < places.size() && places[right].end_ns < end_ns) ++right;
  while (right > 0 && places[right - 1].end_ns >= end_ns) --right;
  size_t out = places.size();
  double nearest = within_ns;
  for (size_t at = right; at < places.size() && places[at].end_ns - end_ns < nearest; ++at) {
    if (!compatible(intake, places[at].signature, signature)) continue;
    nearest = places[at].end_ns - end_ns;
    out = at;
    break;
  }
  for (size_t at = right; at > 0 && end_ns - places[at - 1].end_ns < nearest; --at) {
    if (!compatible(intake, places[at - 1].signature, signature)) continue;
    return at - 1;
  }
  return out;
}

}  // namespace firelane::ranks
