#include "analyze/verdict/repeats.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace firelane::analyze {

namespace {

constexpr size_t kLongestEvenRound = 600;
constexpr size_t kLongestUnevenRound = 32;
// Share of the rounds: an operator that occurs in so many belongs to all of them.
constexpr double kInMostRounds = 0.8;
// Share of the operators of an uneven repeat: those that nearly all rounds have.
constexpr double kInCommon = 0.75;

void sort_by_cover(std::vector<Repeat>& repeats) {
  std::stable_sort(repeats.begin(), repeats.end(), [](const Repeat& a, const Repeat& b) {
    return a.covers() != b.covers() ? a.covers() > b.covers() : a.rounds() > b.rounds();
  });
}

// Every stretch in which names come again after `period` tokens, often enough. One that is long enough and begins at
// `first` reaches over all of the next places: the last of them that differs says where the next one may begin, so that
// few are looked at.
void add_even(std::span<const StringId> names, size_t period, std::vector<Repeat>& out) {
  if (names.size() < period) return;
  const size_t end = names.size() - period;
  const size_t least = (kLeastRounds - 1) * period;
  for (size_t first = 0; first + least <= end;) {
    size_t equal_from = first + least;
    while (equal_from > first && names[equal_from - 1] == names[equal_from - 1 + period]) --equal_from;
    if (equal_from > first) {
      first = equal_from;
      continue;
    }
    size_t differs = first + least;
    while (differs < end && names[differs] == names[differs + period]) ++differs;
    Repeat repeat;
    const size_t rounds = (differs - first) / period + 1;
    for (size_t round = 0; round <= rounds; ++round) repeat.starts.push_back(first + round * period);
    out.push_back(std::move(repeat));
    first = differs + 1;
  }
}

// In how many rounds each name stands.
std::unordered_map<StringId, size_t> rounds_with(std::span<const StringId> names, const std::vector<size_t>& starts) {
  std::unordered_map<StringId, size_t> counts;
  for (size_t round = 0; round + 1 < starts.size(); ++round) {
    for (size_t i = starts[round]; i < starts[round + 1]; ++i) {
      const auto before = names.subspan(starts[round], i - starts[round]);
      if (std::find(before.begin(), before.end(), names[i]) == before.end()) ++counts[names[i]];
    }
  }
  return counts;
}

// Rounds that begin where one name stands, `starts` with the end of the last.
void add_uneven(std::span<const StringId> names, std::vector<size_t> starts, std::vector<Repeat>& out) {
  if (starts.size() <= kLeastRounds) return;
  const std::unordered_map<StringId, size_t> counts = rounds_with(names, starts);
  const auto rounds = static_cast<double>(starts.size() - 1);
  const auto is_common = [&](StringId name) { return static_cast<double>(counts.at(name)) >= kInMostRounds * rounds; };
  const auto of_round =
      std::count_if(counts.begin(), counts.end(), [&](const auto& each) { return is_common(each.first); });
  // The name may also stand shortly before or after the loop.
  const auto is_stray = [&](size_t round) {
    std::unordered_set<StringId> seen;
    for (size_t i = starts[round]; i < starts[round + 1]; ++i) {
      if (is_common(names[i])) seen.insert(names[i]);
    }
    return static_cast<std::ptrdiff_t>(seen.size()) * 2 <= of_round;
  };
  while (starts.size() > 1 && is_stray(starts.size() - 2)) starts.pop_back();
  size_t strays = 0;
  while (strays + 1 < starts.size() && is_stray(strays)) ++strays;
  starts.erase(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(strays));
  if (starts.size() <= kLeastRounds) return;
  size_t common = 0;
  for (size_t i = starts.front(); i < starts.back(); ++i) common += is_common(names[i]) ? 1 : 0;
  const bool alike = static_cast<double>(common) >= kInCommon * static_cast<double>(starts.back() - starts.front());
  if (of_round < 2 || !alike) return;
  out.push_back({.starts = std::move(starts), .even = false});
}

}  // namespace

size_t Repeat::longest_round() const {
  size_t longest = 0;
  for (size_t round = 0; round + 1 < starts.size(); ++round)
    longest = std::max(longest, starts[round + 1] - starts[round]);
  return longest;
}

std::vector<Repeat> even_repeats(std::span<const StringId> names) {
  std::vector<Repeat> repeats;
  const size_t longest = std::min(kLongestEvenRound, names.size() / kLeastRounds);
  for (size_t period = 1; period <= longest; ++period) add_even(names, period, repeats);
  sort_by_cover(repeats);
  return repeats;
}

std::vector<Repeat> uneven_repeats(std::span<const StringId> names) {
  std::unordered_map<StringId, std::vector<size_t>> places;
  for (size_t i = 0; i < names.size(); ++i) places[names[i]].push_back(i);
  std::vector<Repeat> repeats;
  for (auto& [name, all] : places) {
    if (all.size() < kLeastRounds) continue;
    // The last round of a run is as long as the one before it.
    const auto add = [&](size_t from, size_t to) {
      std::vector<size_t> starts(all.begin() + static_cast<std::ptrdiff_t>(from),
                                 all.begin() + static_cast<std::ptrdiff_t>(to));
      if (starts.size() < kLeastRounds) return;
      const size_t last = starts.back() - starts[starts.size() - 2];
      const size_t next = to < all.size() ? all[to] : names.size();
      starts.push_back(std::min(next, starts.back() + last));
      add_uneven(names, std::move(starts), repeats);
    };
    size_t from = 0;
    for (size_t i = 1; i <= all.size(); ++i) {
      if (i < all.size() && all[i] - all[i - 1] <= kLongestUnevenRound) continue;
      add(from, i);
      from = i;
    }
  }
  // A name that comes in some rounds only parts the same stretch into fewer: many rounds count, too. What is left is
  // decided by the name that comes first.
  const auto weight = [](const Repeat& repeat) {
    return static_cast<double>(repeat.covers()) * std::log2(static_cast<double>(repeat.rounds()));
  };
  std::sort(repeats.begin(), repeats.end(), [&](const Repeat& a, const Repeat& b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a.first() < b.first();
  });
  return repeats;
}

}  // namespace firelane::analyze
