#include "ranks/reduce/lay.h"

#include <algorithm>
#include <functional>
#include <map>
#include <thread>

#include "base/parallel.h"
#include "ranks/reduce/align.h"

namespace firelane::ranks {

namespace {

constexpr double kHostSpreadNs = 50'000'000;

class Layer {
 public:
  Layer(const Intake& intake, uint32_t group) : intake_(intake), group_(intake.groups[group]) {
    for (uint32_t m = 0; m < group_.members.size(); ++m) by_domain_[rank_of(m).domain].push_back(m);
    // The rank that recorded the most first: the others are laid along it.
    for (auto& [domain, members] : by_domain_) {
      std::ranges::stable_sort(members, std::greater<>{}, [&](uint32_t m) { return group_.rows[m].size(); });
    }
  }

  // How far rows end from the nearest of their kind on another rank with the same clock: of some, appended to `out`.
  // How soon collectives follow each other.
  Spacing look(std::vector<double>& distances) const {
    constexpr size_t kMostSpaced = 4;
    Spacing out;
    size_t spaced = 0;
    for (const auto& [domain, members] : by_domain_) {
      const bool compares = members.size() > 1 && on_devices(members);
      if (!compares && spaced >= kMostSpaced) continue;
      const Places first = places_of(members[0]);
      if (spaced++ < kMostSpaced) {
        const Spacing own = spacing_of(intake_, first);
        out = {std::min(out.same_ns, own.same_ns), std::min(out.any_ns, own.any_ns)};
      }
      for (size_t k = 1; k < members.size() && compares; ++k) add_distances(first, members[k], distances);
    }
    return out;
  }

  Laid run(const Spacing& spacing, double noise_ns) const {
    Laid out{.group = static_cast<uint32_t>(&group_ - intake_.groups.data()), .spacing = spacing};
    out.instance.resize(group_.members.size());
    out.state.assign(group_.members.size(), LaidState::kCertain);
    for (uint32_t m = 0; m < group_.members.size(); ++m) out.instance[m].assign(group_.rows[m].size(), -1);
    for (const auto& [domain, members] : by_domain_) {
      if (on_devices(members)) {
        lay_by_time(members, noise_ns, out);
      } else {
        lay_by_order(members, out);
      }
    }
    return out;
  }

 private:
  const RankRows& rank_of(uint32_t m) const { return intake_.ranks[group_.members[m]]; }
  Entrant entrant(uint32_t m, size_t i) const {
    return {{group_.members[m], group_.rows[m][i].row}, group_.rows[m][i].signature};
  }
  bool on_devices(const std::vector<uint32_t>& members) const {
    return std::ranges::all_of(members, [&](uint32_t m) { return rank_of(m).part.has_device_work; });
  }

  // The rows of a rank, each a collective that nobody else is in, numbered as in its list.
  Places places_of(uint32_t m) const {
    const std::vector<CollectiveRow>& rows = rank_of(m).rows;
    Places out;
    out.reserve(group_.rows[m].size());
    for (uint32_t i = 0; i < group_.rows[m].size(); ++i) {
      const CollectiveRow& row = rows[group_.rows[m][i].row];
      const auto end = static_cast<double>(row.end_ns);
      const auto start = static_cast<double>(row.start_ns);
      out.push_back({end, end, start, start, i, row.signature, 1});
    }
    const auto by_end = [](const Place& a, const Place& b) { return a.end_ns < b.end_ns; };
    if (!std::is_sorted(out.begin(), out.end(), by_end)) std::stable_sort(out.begin(), out.end(), by_end);
    return out;
  }

  void add_distances(const Places& places, uint32_t m, std::vector<double>& out) const {
    constexpr double kWideNs = 1'000'000;
    constexpr size_t kMostLookedAt = 64;
    const std::vector<GroupRow>& list = group_.rows[m];
    const size_t stride = std::max<size_t>(1, list.size() / kMostLookedAt);
    for (size_t i = 0; i < list.size(); i += stride) {
      const auto end = static_cast<double>(rank_of(m).rows[list[i].row].end_ns);
      const auto from = std::ranges::lower_bound(places, end, {}, &Place::end_ns) - places.begin();
      const size_t at = nearest_place(intake_, places, list[i].signature, end, kWideNs, static_cast<size_t>(from));
      if (at < places.size()) out.push_back(std::abs(places[at].end_ns - end));
    }
  }

  void lay_by_time(const std::vector<uint32_t>& members, double noise_ns, Laid& out) const {
    auto next_found = static_cast<uint32_t>(out.found.size());
    Places places;
    for (const uint32_t m : members) {
      const Places own = places_of(m);
      const std::vector<uint32_t> to =
          merge_places(intake_, places, own, out.spacing, {noise_ns, noise_ns}, &next_found);
      out.found.resize(next_found);
      for (size_t i = 0; i < to.size(); ++i) {
        out.instance[m][own[i].found] = static_cast<int32_t>(to[i]);
        std::vector<Entrant>& entrants = out.found[to[i]];
        if (entrants.empty()) entrants.reserve(members.size());
        entrants.push_back(entrant(m, own[i].found));
      }
    }
  }

  // Threads of a CPU backend are scheduled late on busy cores, so that ends lie apart.
  void lay_by_order(const std::vector<uint32_t>& members, Laid& out) const {
    constexpr int kReferences = 3;  // what the first lacks, the next may have
    const ClockGuess clock{0, kHostSpreadNs, kHostSpreadNs / 2, kHostSpreadNs, intake_.ranks.size()};
    for (int round = 0; round < kReferences; ++round) {
      std::vector<RowList> left(members.size());
      size_t reference = 0;
      for (size_t k = 0; k < members.size(); ++k) {
        if (out.state[members[k]] != LaidState::kCertain) continue;
        const std::vector<int32_t>& instance = out.instance[members[k]];
        for (uint32_t i = 0; i < instance.size(); ++i) {
          if (instance[i] < 0) left[k].push_back(i);
        }
        if (left[k].size() > left[reference].size()) reference = k;
      }
      if (left[reference].empty()) break;
      lay_along(members, left, reference, clock, out);
    }
    // What is left may have partners on other machines.
    for (const uint32_t m : members) {
      for (size_t i = 0; i < out.instance[m].size(); ++i) {
        if (out.instance[m][i] >= 0) continue;
        out.instance[m][i] = static_cast<int32_t>(out.found.size());
        out.found.push_back({entrant(m, i)});
      }
    }
  }

  void lay_along(const std::vector<uint32_t>& members, const std::vector<RowList>& left, size_t reference,
                 const ClockGuess& clock, Laid& out) const {
    const auto rows_of = [&](size_t k) {
      RowList rows;
      for (const uint32_t i : left[k]) rows.push_back(group_.rows[members[k]][i].row);
      return rows;
    };
    const RowList reference_rows = rows_of(reference);
    const Lane lane{&rank_of(members[reference]).rows, &reference_rows};
    const size_t base = out.found.size();
    for (const uint32_t i : left[reference]) {
      out.instance[members[reference]][i] = static_cast<int32_t>(out.found.size());
      out.found.push_back({entrant(members[reference], i)});
    }
    for (size_t k = 0; k < members.size(); ++k) {
      const uint32_t m = members[k];
      if (k == reference || left[k].empty()) continue;
      const RowList rows = rows_of(k);
      const Alignment aligned = align(lane, {&rank_of(m).rows, &rows}, intake_.signatures, clock);
      if (!aligned.certain) {
        if (base == 0) out.state[m] = aligned.several ? LaidState::kSeveral : LaidState::kNone;
        continue;
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        if (aligned.reference[i] < 0) continue;
        const auto at = base + static_cast<size_t>(aligned.reference[i]);
        out.instance[m][left[k][i]] = static_cast<int32_t>(at);
        out.found[at].push_back(entrant(m, left[k][i]));
      }
    }
  }

  const Intake& intake_;
  const JobGroup& group_;
  std::map<uint32_t, std::vector<uint32_t>> by_domain_;  // members
};

double noise_of(std::vector<double>& distances) {
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return 1.4826 * *middle;
}

}  // namespace

std::vector<Laid> lay_by_clock(const Intake& intake, const std::vector<uint32_t>& groups) {
  constexpr size_t kEnough = 16;  // distances that say how large the noise is
  constexpr double kUsualNoiseNs = 5'000;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> noise(groups.size(), -1);
  std::vector<Spacing> spacing(groups.size());
  std::vector<Laid> out(groups.size());
  parallel_each(groups.size(), threads, [&](size_t i) {
    std::vector<double> distances;
    spacing[i] = Layer(intake, groups[i]).look(distances);
    if (distances.size() >= kEnough) noise[i] = noise_of(distances);
  });
  // Groups with few rows: as usual in this job.
  std::vector<double> known;
  std::ranges::copy_if(noise, std::back_inserter(known), [](double each) { return each >= 0; });
  std::ranges::sort(known);
  const double usual = known.empty() ? kUsualNoiseNs : known[known.size() / 2];
  parallel_each(groups.size(), threads,
                [&](size_t i) { out[i] = Layer(intake, groups[i]).run(spacing[i], noise[i] >= 0 ? noise[i] : usual); });
  return out;
}

}  // namespace firelane::ranks
