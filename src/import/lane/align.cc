#include "import/lane/align.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace firelane::importer {
namespace {

using Tokens = std::span<const uint64_t>;

constexpr int kMaxEdits = 512;  // of one comparison: time and memory grow with it

// Ranges of both sequences that are still to be paired.
struct Gap {
  uint32_t a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
};

class Aligner {
 public:
  Aligner(Tokens a, Tokens b) : a_(a), b_(b), partner_(a.size(), kUnpaired) {}

  std::vector<uint32_t> run() {
    gaps_.push_back({0, static_cast<uint32_t>(a_.size()), 0, static_cast<uint32_t>(b_.size())});
    while (!gaps_.empty()) {
      Gap gap = gaps_.back();
      gaps_.pop_back();
      trim(gap);
      if (gap.a_begin == gap.a_end || gap.b_begin == gap.b_end) continue;
      if (!by_edits(gap)) split_at_anchors(gap);
    }
    return std::move(partner_);
  }

 private:
  void trim(Gap& gap) {
    while (gap.a_begin < gap.a_end && gap.b_begin < gap.b_end && a_[gap.a_begin] == b_[gap.b_begin])
      partner_[gap.a_begin++] = gap.b_begin++;
    while (gap.a_begin < gap.a_end && gap.b_begin < gap.b_end && a_[gap.a_end - 1] == b_[gap.b_end - 1])
      partner_[--gap.a_end] = --gap.b_end;
  }

  // Furthest-reaching paths by number of edits; false if more than kMaxEdits are needed.
  bool by_edits(const Gap& gap) {
    const Tokens a = a_.subspan(gap.a_begin, gap.a_end - gap.a_begin);
    const Tokens b = b_.subspan(gap.b_begin, gap.b_end - gap.b_begin);
    const auto n = static_cast<int>(a.size());
    const auto m = static_cast<int>(b.size());
    if (std::abs(n - m) > kMaxEdits) return false;
    std::vector<int> reach(2 * kMaxEdits + 3, 0);  // x on diagonal k = x - y
    const auto at = [&](int k) -> int& { return reach[static_cast<size_t>(k + kMaxEdits + 1)]; };
    std::vector<std::vector<int>> before;  // reach of diagonals -d .. d before step d
    for (int d = 0; d <= kMaxEdits; ++d) {
      before.emplace_back(reach.begin() + (kMaxEdits + 1 - d - 1), reach.begin() + (kMaxEdits + 1 + d + 2));
      for (int k = -d; k <= d; k += 2) {
        int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
        while (x < n && x - k >= 0 && x - k < m && a[static_cast<size_t>(x)] == b[static_cast<size_t>(x - k)]) ++x;
        at(k) = x;
        if (x >= n && x - k >= m) {
          walk_back(gap, before, n, m);
          return true;
        }
      }
    }
    return false;
  }

  void walk_back(const Gap& gap, const std::vector<std::vector<int>>& before, int x, int y) {
    for (auto d = static_cast<int>(before.size()) - 1; d >= 0; --d) {
      const std::vector<int>& reach = before[static_cast<size_t>(d)];
      const auto at = [&](int k) { return reach[static_cast<size_t>(k + d + 1)]; };
      const int k = x - y;
      const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      const int from_x = d == 0 ? 0 : down ? at(k + 1) : at(k - 1);
      const int from_y = d == 0 ? 0 : from_x - (down ? k + 1 : k - 1);
      const int start_x = d == 0 ? 0 : down ? from_x : from_x + 1;
      while (x > start_x) {
        --x;
        --y;
        partner_[gap.a_begin + static_cast<uint32_t>(x)] = gap.b_begin + static_cast<uint32_t>(y);
      }
      x = from_x;
      y = from_y;
    }
  }

  // Elements that occur once in each, as many as are in the same order; what lies between them is compared again.
  void split_at_anchors(const Gap& gap) {
    struct Count {
      uint32_t in_a = 0, in_b = 0, at_a = 0, at_b = 0;
    };
    std::unordered_map<uint64_t, Count> counts;
    for (uint32_t i = gap.a_begin; i < gap.a_end; ++i) {
      Count& count = counts[a_[i]];
      ++count.in_a;
      count.at_a = i;
    }
    for (uint32_t i = gap.b_begin; i < gap.b_end; ++i) {
      const auto found = counts.find(b_[i]);
      if (found == counts.end()) continue;
      ++found->second.in_b;
      found->second.at_b = i;
    }
    std::vector<std::pair<uint32_t, uint32_t>> anchors;
    for (const auto& [token, count] : counts) {
      if (count.in_a == 1 && count.in_b == 1) anchors.emplace_back(count.at_a, count.at_b);
    }
    std::sort(anchors.begin(), anchors.end());
    anchors = longest_rising(anchors);
    if (anchors.empty()) return;  // nothing to hold on to
    Gap rest = gap;
    for (const auto& [at_a, at_b] : anchors) {
      partner_[at_a] = at_b;
      gaps_.push_back({rest.a_begin, at_a, rest.b_begin, at_b});
      rest.a_begin = at_a + 1;
      rest.b_begin = at_b + 1;
    }
    gaps_.push_back(rest);
  }

  static std::vector<std::pair<uint32_t, uint32_t>> longest_rising(
      const std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
    std::vector<size_t> tails;  // of runs by length
    std::vector<size_t> previous(pairs.size(), SIZE_MAX);
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto at = std::lower_bound(tails.begin(), tails.end(), pairs[i].second,
                                       [&](size_t tail, uint32_t b) { return pairs[tail].second < b; });
      if (at != tails.begin()) previous[i] = *std::prev(at);
      if (at == tails.end()) {
        tails.push_back(i);
      } else {
        *at = i;
      }
    }
    std::vector<std::pair<uint32_t, uint32_t>> run;
    for (size_t i = tails.empty() ? SIZE_MAX : tails.back(); i != SIZE_MAX; i = previous[i]) run.push_back(pairs[i]);
    std::reverse(run.begin(), run.end());
    return run;
  }

  Tokens a_;
  Tokens b_;
  std::vector<uint32_t> partner_;
  std::vector<Gap> gaps_;
};

}  // namespace

std::vector<uint32_t> align(Tokens a, Tokens b) { return Aligner(a, b).run(); }

}  // namespace firelane::importer
