#include "ranks/reduce/axis_match.h"

#include <algorithm>
#include <cmath>

#include "ranks/reduce/axis.h"

namespace firelane::ranks {

namespace {

constexpr double kLeastAxisNoiseNs = 500;
constexpr size_t kNoiseInstances = 20'000;

class AxisMatcher {
 public:
  AxisMatcher(const Intake& intake, const Matches& matched, Clocks& clocks, std::span<Laid> open)
      : axis_{.intake = intake, .clocks = clocks, .open = open} {
    measure_noise(matched);
  }

  void run() {
    for (Laid& laid : axis_.open) {
      dissolve(laid, doubtful(laid));
      found_counts_.push_back(static_cast<uint32_t>(laid.found.size()));
    }
    axis_.find_members();
    axis_.places.resize(axis_.open.size());
    axis_.covered.resize(axis_.open.size());
    for (size_t o = 0; o < axis_.open.size(); ++o) put_on_axis(o);
    // A machine that was added may tell the clock of one that was tried before.
    constexpr int kRounds = 3;
    bool any = true;
    for (int round = 0; round < kRounds && any; ++round) {
      any = false;
      for (uint32_t d = 0; d < axis_.clocks.domains.size(); ++d) {
        if (axis_.clocks.domains[d].known || !find_clock(axis_, d, axis_.open_rows(d))) continue;
        any = true;
        become_known(d);
        assign_domain(d);
      }
    }
    for (uint32_t d = 0; d < axis_.clocks.domains.size(); ++d) {
      if (axis_.is_known(d)) assign_domain(d);
    }
    for (Laid& laid : axis_.open) gather_found(laid);
  }

 private:
  // How far the end of a rank lies from the mean of its collective: a standard deviation that single late ones do not
  // change. Between machines where there is any, else within one.
  void measure_noise(const Matches& matched) {
    std::vector<double> between;
    std::vector<double> within;
    const size_t stride = std::max<size_t>(1, matched.instances.size() / kNoiseInstances);
    for (size_t i = 0; i < matched.instances.size(); i += stride) {
      const Instance& instance = matched.instances[i];
      const double count = instance.end - instance.begin;
      if (count < 2 || axis_.intake.groups[instance.group].point_to_point) continue;
      double sum = 0;
      bool known = true;
      bool one_clock = true;
      const uint32_t first = axis_.intake.ranks[matched.members[instance.begin].rank].domain;
      const auto end_of = [&](uint32_t m) {
        const Member& member = matched.members[m];
        return axis_.on_axis(axis_.intake.ranks[member.rank].domain, axis_.row_of(member).end_ns);
      };
      for (uint32_t m = instance.begin; m < instance.end; ++m) {
        const RankRows& rank = axis_.intake.ranks[matched.members[m].rank];
        known = known && axis_.is_known(rank.domain) && rank.part.has_device_work;
        one_clock = one_clock && rank.domain == first;
        if (known) sum += end_of(m);
      }
      if (!known) continue;
      for (uint32_t m = instance.begin; m < instance.end; ++m) {
        (one_clock ? within : between).push_back(std::abs(end_of(m) - sum / count) * std::sqrt(count / (count - 1)));
      }
    }
    constexpr size_t kEnough = 20;
    axis_.noise_between = between.size() >= kEnough;
    std::vector<double>& off = axis_.noise_between ? between : within;
    axis_.noise_ns = kLeastAxisNoiseNs;
    axis_.noise_known = off.size() >= kEnough;
    if (!axis_.noise_known) return;
    const auto middle = off.begin() + static_cast<std::ptrdiff_t>(off.size() / 2);
    std::nth_element(off.begin(), middle, off.end());
    axis_.noise_ns = std::max(kLeastAxisNoiseNs, 1.4826 * *middle);
  }

  // Rows that look for their collective: those that are alone in it, and those that the order put into one although it
  // contradicts the clocks (at the edge of a recording nothing follows that would show it).
  std::vector<bool> doubtful(const Laid& laid) const {
    std::vector<bool> out(laid.found.size());
    std::vector<double> sums(laid.found.size(), 0);
    std::vector<double> last_start(laid.found.size(), -INFINITY);
    std::vector<double> first_end(laid.found.size(), INFINITY);
    std::vector<uint32_t> counts(laid.found.size(), 0);
    const auto each_row = [&](const auto& visit) {
      for (size_t m = 0; m < laid.instance.size(); ++m) {
        const uint32_t domain = axis_.domain_of(laid, m);
        if (!axis_.is_known(domain) || !axis_.on_device(laid, m)) continue;
        for (size_t i = 0; i < laid.instance[m].size(); ++i) {
          if (laid.instance[m][i] >= 0) visit(m, domain, i, static_cast<size_t>(laid.instance[m][i]));
        }
      }
    };
    each_row([&](size_t m, uint32_t domain, size_t i, size_t f) {
      const CollectiveRow& row = axis_.row_of(laid, m, i);
      const double end = axis_.on_axis(domain, row.end_ns);
      sums[f] += end;
      ++counts[f];
      first_end[f] = std::min(first_end[f], end);
      last_start[f] = std::max(last_start[f], axis_.on_axis(domain, row.start_ns));
    });
    for (size_t f = 0; f < out.size(); ++f) {
      out[f] = laid.found[f].size() < 2 || (counts[f] > 1 && last_start[f] > first_end[f] + axis_.reach_ns());
    }
    // The row before or after it ends nearer to the others.
    each_row([&](size_t m, uint32_t domain, size_t i, size_t f) {
      if (out[f] || counts[f] < 2) return;
      const double end = axis_.on_axis(domain, axis_.row_of(laid, m, i).end_ns);
      const double others = (sums[f] - end) / (counts[f] - 1);
      if (std::abs(end - others) <= axis_.reach_ns()) return;
      for (const size_t j : {i - 1, i + 1}) {
        if (j >= laid.instance[m].size()) continue;
        if (!axis_.compatible(axis_.group_row(laid, m, j).signature, axis_.group_row(laid, m, i).signature)) continue;
        const double beside = axis_.on_axis(domain, axis_.row_of(laid, m, j).end_ns);
        if (std::abs(beside - others) < std::abs(end - others)) out[f] = true;
      }
    });
    return out;
  }

  static void dissolve(Laid& laid, const std::vector<bool>& chosen) {
    std::vector<int32_t> renamed(laid.found.size(), -1);
    std::vector<std::vector<Entrant>> kept;
    for (size_t f = 0; f < laid.found.size(); ++f) {
      if (chosen[f]) continue;
      renamed[f] = static_cast<int32_t>(kept.size());
      kept.push_back(std::move(laid.found[f]));
    }
    laid.found = std::move(kept);
    for (auto& rows : laid.instance) {
      for (int32_t& at : rows) at = at < 0 ? -1 : renamed[static_cast<size_t>(at)];
    }
  }

  // The collectives of a group whose clocks are known: those that were found, and rows of single ranks.
  void put_on_axis(size_t o) {
    Laid& laid = axis_.open[o];
    std::vector<Place>& places = axis_.places[o];
    for (uint32_t f = 0; f < laid.found.size(); ++f) {
      double sum = 0;
      Place place{.found = f, .signature = laid.found[f][0].signature};
      for (const Entrant& each : laid.found[f]) {
        const uint32_t domain = axis_.intake.ranks[each.member.rank].domain;
        if (axis_.intake.signatures[place.signature].size_key < 0) place.signature = each.signature;
        if (!axis_.is_known(domain)) continue;
        sum += axis_.on_axis(domain, axis_.row_of(each.member).end_ns);
        axis_.add_times(place, domain, axis_.row_of(each.member));
        ++place.members;
      }
      if (place.members == 0) continue;
      place.end_ns = sum / place.members;
      places.push_back(place);
    }
    sort_places(places);
    for (size_t m = 0; m < laid.instance.size(); ++m) {
      if (!axis_.is_known(axis_.domain_of(laid, m)) || !axis_.on_device(laid, m)) continue;
      assign_member(o, m);
      axis_.add_covered(o, m);
    }
  }

  static void sort_places(std::vector<Place>& places) {
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.found < b.found;
    });
  }

  void assign_domain(uint32_t domain) {
    for (const auto& [o, m] : axis_.of_domain[domain]) {
      if (!axis_.on_device(axis_.open[o], m)) continue;
      assign_member(o, m);
      axis_.add_covered(o, m);
    }
  }

  // Collectives that a machine shares with others whose clocks are not known are not on the axis: its rows leave them,
  // and look for those that are.
  void become_known(uint32_t domain) {
    std::vector<int32_t> place_of;  // by found
    uint32_t before = UINT32_MAX;
    for (const auto& [o, m] : axis_.of_domain[domain]) {
      Laid& laid = axis_.open[o];
      if (o != before) {
        place_of.assign(found_counts_[o], -1);
        for (size_t p = 0; p < axis_.places[o].size(); ++p) {
          place_of[axis_.places[o][p].found] = static_cast<int32_t>(p);
        }
        before = o;
      }
      for (size_t i = 0; i < laid.instance[m].size(); ++i) {
        int32_t& at = laid.instance[m][i];
        if (at < 0) continue;
        if (const int32_t place = place_of[static_cast<size_t>(at)]; place >= 0) {
          axis_.add_times(axis_.places[o][static_cast<size_t>(place)], domain, axis_.row_of(laid, m, i));
        } else {
          at = -1;
        }
      }
    }
  }

  // REQUIRES: the clock of the member is known.
  void assign_member(size_t o, size_t m) {
    Laid& laid = axis_.open[o];
    std::vector<Place>& places = axis_.places[o];
    const uint32_t domain = axis_.domain_of(laid, m);
    auto& instance = laid.instance[m];
    std::vector<int32_t> own;  // collectives that the rank is in
    for (const int32_t at : instance) {
      if (at >= 0) own.push_back(at);
    }
    if (own.size() == instance.size() && laid.state[m] == LaidState::kCertain) return;
    std::sort(own.begin(), own.end());
    std::vector<int32_t> joined;
    std::vector<Place> added;
    for (uint32_t i = 0; i < instance.size(); ++i) {
      if (instance[i] >= 0) continue;
      const GroupRow& group_row = axis_.group_row(laid, m, i);
      const CollectiveRow& row = axis_.row_of(laid, m, i);
      const double end = axis_.on_axis(domain, row.end_ns);
      // Collectives of the same kind that follow each other closely are told apart by less.
      double reach = axis_.reach_ns();
      for (const uint32_t j : {i - 1, i + 1}) {
        if (j >= instance.size() || !axis_.compatible(axis_.group_row(laid, m, j).signature, group_row.signature)) {
          continue;
        }
        reach = std::min(reach, 0.3 * std::abs(axis_.on_axis(domain, axis_.row_of(laid, m, j).end_ns) - end));
      }
      const Axis::Nearest near = axis_.nearest(places, group_row.signature, end, 4 * reach);
      if (near.place == nullptr || near.distance_ns > 3 * reach) {  // nobody else has it, so far
        Place place{.end_ns = end, .found = found_counts_[o]++, .signature = group_row.signature, .members = 1};
        axis_.add_times(place, domain, row);
        instance[i] = static_cast<int32_t>(place.found);
        added.push_back(place);
        continue;
      }
      if (near.distance_ns > reach || near.next_ns < 3 * near.distance_ns || near.next_ns < reach) continue;
      const auto found = static_cast<int32_t>(near.place->found);
      if (std::binary_search(own.begin(), own.end(), found) || std::ranges::count(joined, found) > 0) continue;
      if (!follows(*near.place, domain, row)) continue;
      joined.push_back(found);
      instance[i] = found;
      Place& place = places[static_cast<size_t>(near.place - places.data())];
      ++place.members;
      place.end_ns += (end - place.end_ns) / place.members;
      axis_.add_times(place, domain, row);
      constexpr size_t kFewJoined = 32;
      if (joined.size() < kFewJoined) continue;
      own.insert(own.end(), joined.begin(), joined.end());
      std::sort(own.begin(), own.end());
      joined.clear();
    }
    laid.state[m] = LaidState::kCertain;
    places.insert(places.end(), added.begin(), added.end());
    sort_places(places);
  }

  // No rank ends before another has begun, as far as clocks are known.
  bool follows(const Place& place, uint32_t domain, const CollectiveRow& row) const {
    return place.last_start_ns <= axis_.on_axis(domain, row.end_ns) + axis_.reach_ns() &&
           axis_.on_axis(domain, row.start_ns) <= place.first_end_ns + axis_.reach_ns();
  }

  // `instance` has the last word of which rows are together.
  void gather_found(Laid& laid) const {
    const auto o = static_cast<size_t>(&laid - axis_.open.data());
    laid.found.assign(found_counts_[o], {});
    for (size_t m = 0; m < laid.instance.size(); ++m) {
      for (size_t i = 0; i < laid.instance[m].size(); ++i) {
        if (laid.instance[m][i] < 0) continue;
        const GroupRow& row = axis_.group_row(laid, m, i);
        laid.found[static_cast<size_t>(laid.instance[m][i])].push_back(
            {{axis_.rank_of(laid, m), row.row}, row.signature});
      }
    }
  }

  Axis axis_;
  std::vector<uint32_t> found_counts_;  // by open group: collectives, those that were added included
};

}  // namespace

bool Laid::complete() const {
  return std::all_of(state.begin(), state.end(), [](LaidState each) { return each == LaidState::kCertain; });
}

bool Laid::has_open_rows() const {
  const auto is_open = [](int32_t at) { return at < 0; };
  return std::any_of(instance.begin(), instance.end(),
                     [&](const auto& rows) { return std::any_of(rows.begin(), rows.end(), is_open); }) ||
         std::any_of(found.begin(), found.end(), [](const auto& entrants) { return entrants.size() < 2; });
}

void match_on_axis(const Intake& intake, const Matches& matched, Clocks& clocks, std::span<Laid> open) {
  AxisMatcher(intake, matched, clocks, open).run();
}

}  // namespace firelane::ranks
