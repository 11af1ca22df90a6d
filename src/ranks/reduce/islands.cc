#include "ranks/reduce/islands.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "base/parallel.h"
#include "ranks/reduce/shift.h"

namespace firelane::ranks {

namespace {

constexpr size_t kMostJudged = 60'000'000;  // rows: large jobs that repeat evenly stay open then

Place place_of(const Intake& intake, const std::vector<Entrant>& entrants, uint32_t found) {
  Place out{.found = found, .signature = entrants[0].signature};
  double sum = 0;
  for (const Entrant& each : entrants) {
    const CollectiveRow& row = intake.ranks[each.member.rank].rows[each.member.row];
    const auto end = static_cast<double>(row.end_ns);
    if (intake.signatures[out.signature].size_key < 0) out.signature = each.signature;
    sum += end;
    out.first_end_ns = std::min(out.first_end_ns, end);
    out.first_start_ns = std::min(out.first_start_ns, static_cast<double>(row.start_ns));
    out.last_start_ns = std::max(out.last_start_ns, static_cast<double>(row.start_ns));
    ++out.members;
  }
  out.end_ns = sum / out.members;
  return out;
}

}  // namespace

void move_island(Island& island, const ClockLine& line) {
  for (GroupPlaces& group : island.groups) {
    for (Place& place : group.places) {
      const double ahead = line.ahead(place.end_ns);
      place.end_ns -= ahead;
      place.first_end_ns -= ahead;
      place.first_start_ns -= ahead;
      place.last_start_ns -= ahead;
    }
  }
}

Islands::Islands(const Intake& intake, const Clocks* known, std::span<Laid> laid)
    : intake_(intake), laid_(laid), island_of_(intake.domains.size(), UINT32_MAX), left_to_judge_(kMostJudged) {
  parents_.resize(laid_.size());
  build();
  if (known != nullptr) join_known(*known);
}

void Islands::build() {
  for (uint32_t l = 0; l < laid_.size(); ++l) {
    const Laid& laid = laid_[l];
    const std::vector<uint32_t>& members = intake_.groups[laid.group].members;
    const auto domain_of = [&](uint32_t rank) { return intake_.ranks[rank].domain; };
    if (std::ranges::all_of(members, [&](uint32_t r) { return domain_of(r) == domain_of(members[0]); })) continue;
    parents_[l].resize(laid.found.size());
    std::iota(parents_[l].begin(), parents_[l].end(), 0u);
    std::map<uint32_t, Places> places;  // by domain
    for (uint32_t f = 0; f < laid.found.size(); ++f) {
      if (laid.found[f].empty()) continue;
      places[domain_of(laid.found[f][0].member.rank)].push_back(place_of(intake_, laid.found[f], f));
    }
    for (auto& [domain, own] : places) {
      std::ranges::stable_sort(own, {}, &Place::end_ns);
      if (island_of_[domain] == UINT32_MAX) {
        island_of_[domain] = static_cast<uint32_t>(islands_.size());
        islands_.push_back({.domains = {domain}});
      }
      Island& island = islands_[island_of_[domain]];
      island.size += own.size();
      island.groups.push_back({l, intake_.groups[laid.group].size, std::move(own)});
    }
  }
  for (const RankRows& rank : intake_.ranks) {
    if (island_of_[rank.domain] == UINT32_MAX || rank.part.has_device_work) continue;
    islands_[island_of_[rank.domain]].on_device = false;
  }
}

void Islands::join_known(const Clocks& known) {
  uint32_t first = UINT32_MAX;
  for (uint32_t d = 0; d < known.domains.size(); ++d) {
    const DomainClock& clock = known.domains[d];
    if (!clock.known || !clock.consistent || island_of_[d] == UINT32_MAX) continue;
    const ClockLine line{clock.offset_ns, clock.drift, static_cast<double>(clock.at_ns)};
    if (first == UINT32_MAX) {
      first = island_of_[d];
      move_island(islands_[first], line);
    } else {
      join(first, island_of_[d], line, {clock.spread_ns, clock.spread_ns});
    }
  }
}

bool Islands::meet(const Island& a, const Island& b) {
  size_t i = 0;
  for (const GroupPlaces& group : b.groups) {
    while (i < a.groups.size() && a.groups[i].laid < group.laid) ++i;
    if (i == a.groups.size()) return false;
    if (a.groups[i].laid == group.laid) return true;
  }
  return false;
}

uint32_t Islands::root(uint32_t laid, uint32_t found) {
  std::vector<uint32_t>& parents = parents_[laid];
  while (parents[found] != found) found = parents[found] = parents[parents[found]];
  return found;
}

std::vector<std::vector<uint32_t>> Islands::add_places(Island& to, Island from, const EndNoise& noise) const {
  std::vector<std::vector<uint32_t>> out(from.groups.size());
  const size_t before = to.groups.size();
  size_t i = 0;
  for (size_t g = 0; g < from.groups.size(); ++g) {
    GroupPlaces& group = from.groups[g];
    while (i < before && to.groups[i].laid < group.laid) ++i;
    if (i == before || to.groups[i].laid != group.laid) {
      to.groups.push_back(std::move(group));
    } else {
      out[g] = merge_places(intake_, to.groups[i].places, group.places, laid_[group.laid].spacing, noise);
    }
  }
  std::ranges::inplace_merge(to.groups, to.groups.begin() + static_cast<std::ptrdiff_t>(before), {},
                             &GroupPlaces::laid);
  to.size += from.size;
  to.on_device = to.on_device && from.on_device;
  to.domains.insert(to.domains.end(), from.domains.begin(), from.domains.end());
  return out;
}

void Islands::join(uint32_t to, uint32_t from, const ClockLine& line, const EndNoise& noise) {
  move_island(islands_[from], line);
  for (const uint32_t d : islands_[from].domains) island_of_[d] = to;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> found;  // of the places of `from`, by group
  for (const GroupPlaces& group : islands_[from].groups) {
    found.emplace_back(group.laid, std::vector<uint32_t>{});
    for (const Place& place : group.places) found.back().second.push_back(place.found);
  }
  const auto went = add_places(islands_[to], std::exchange(islands_[from], {}), noise);
  for (size_t g = 0; g < went.size(); ++g) {
    const auto& [laid, own] = found[g];
    for (size_t p = 0; p < went[g].size(); ++p) parents_[laid][root(laid, own[p])] = root(laid, went[g][p]);
  }
}

void Islands::join_all() {
  constexpr int kJoinRounds = 3;
  constexpr size_t kMostInVain = 8;  // islands from which nothing can be reached: then the others are alike
  std::vector<uint32_t> order(islands_.size());
  std::iota(order.begin(), order.end(), 0u);
  bool any = true;
  for (int round = 0; round < kJoinRounds && any; ++round) {
    // Those that know the most first: they tell the others.
    std::erase_if(order, [&](uint32_t i) { return islands_[i].domains.empty(); });
    std::ranges::stable_sort(order, std::greater<>{}, [&](uint32_t i) { return islands_[i].size; });
    any = false;
    size_t in_vain = 0;
    for (const uint32_t seed : order) {
      if (islands_[seed].domains.empty()) continue;
      const bool grew = grow(seed, order);
      any = any || grew;
      in_vain = grew ? 0 : in_vain + 1;
      if (in_vain == kMostInVain) break;
    }
  }
}

// Joins to `seed` what can be joined to it.
bool Islands::grow(uint32_t seed, std::span<const uint32_t> order) {
  constexpr size_t kAtOnce = 16;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<size_t> tried(islands_.size(), 0);  // how large the seed was then
  bool out = false;
  for (bool again = true; again;) {
    again = false;
    for (size_t next = 0; next < order.size();) {
      // What is found of one holds whatever is joined meanwhile.
      std::vector<uint32_t> batch;
      for (; next < order.size() && batch.size() < kAtOnce; ++next) {
        const uint32_t other = order[next];
        if (other == seed || islands_[other].domains.empty() || islands_[seed].size < 2 * tried[other]) continue;
        if (meet(islands_[seed], islands_[other])) batch.push_back(other);
      }
      if (batch.empty() || left_to_judge_ == 0) continue;
      std::vector<FoundShift> found(batch.size());
      parallel_each(batch.size(), threads,
                    [&](size_t i) { found[i] = find_shift(intake_, islands_[seed], islands_[batch[i]]); });
      const size_t size = islands_[seed].size;
      for (size_t i = 0; i < batch.size(); ++i) {
        left_to_judge_ -= std::min(left_to_judge_, found[i].judged);
        tried[batch[i]] = size;
        if (found[i].found == ShiftFound::kOne) {
          join(seed, batch[i], found[i].line, found[i].noise);
          out = again = true;
        } else if (found[i].found == ShiftFound::kSeveral) {
          islands_[batch[i]].was_open = true;
        }
      }
    }
  }
  return out;
}

void Islands::finish() {
  for (uint32_t l = 0; l < laid_.size(); ++l) {
    Laid& laid = laid_[l];
    if (parents_[l].empty()) continue;  // of one clock
    for (uint32_t f = 0; f < laid.found.size(); ++f) {
      const uint32_t to = root(l, f);
      if (to == f) continue;
      laid.found[to].insert(laid.found[to].end(), laid.found[f].begin(), laid.found[f].end());
      laid.found[f].clear();
    }
    for (auto& rows : laid.instance) {
      for (int32_t& at : rows) at = static_cast<int32_t>(root(l, static_cast<uint32_t>(at)));
    }
    leave_largest(laid);
  }
}

// A collective whose ranks are on several islands would be several: it is that of the largest one, and the rows of the
// others are open.
void Islands::leave_largest(Laid& laid) const {
  const std::vector<uint32_t>& members = intake_.groups[laid.group].members;
  const auto island_of = [&](uint32_t rank) { return island_of_[intake_.ranks[rank].domain]; };
  std::map<uint32_t, size_t> ranks;  // by island
  for (const uint32_t r : members) ++ranks[island_of(r)];
  if (ranks.size() < 2) return;
  const auto largest = std::ranges::max_element(ranks, {}, [](const auto& each) { return each.second; });
  for (std::vector<Entrant>& entrants : laid.found) {
    std::erase_if(entrants, [&](const Entrant& each) { return island_of(each.member.rank) != largest->first; });
  }
  for (size_t m = 0; m < members.size(); ++m) {
    const uint32_t island = island_of(members[m]);
    if (island == largest->first) continue;
    laid.state[m] = islands_[island].was_open ? LaidState::kSeveral : LaidState::kNone;
    std::ranges::fill(laid.instance[m], -1);
  }
}

}  // namespace firelane::ranks
