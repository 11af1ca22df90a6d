// Joins islands that only together show which differences of their clocks are true: see islands.h.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>

#include "base/parallel.h"
#include "ranks/reduce/islands.h"
#include "ranks/reduce/shift.h"

namespace firelane::ranks {

namespace {

constexpr size_t kMostTogether = 48;

// Islands in a tree of the shifts that fit best. Each edge is then proved with everything on either side of it.
class TogetherFinder {
 public:
  explicit TogetherFinder(Islands& islands) : islands_(islands) {}

  bool run() {
    for (uint32_t i = 0; i < islands_.all().size(); ++i) {
      if (!islands_.all()[i].domains.empty()) nodes_.push_back(i);
    }
    // Those that know the most.
    std::ranges::stable_sort(nodes_, std::greater<>{}, [&](uint32_t i) { return islands_.all()[i].size; });
    if (nodes_.size() > kMostTogether) nodes_.resize(kMostTogether);
    if (nodes_.size() < 3) return false;
    bool joined = false;
    for (const std::vector<Edge>& tree : trees()) joined = prove(tree) || joined;
    return joined;
  }

 private:
  struct Edge {
    uint32_t a = 0;
    uint32_t b = 0;
    FoundShift shift;  // of b, seen from a
  };

  std::vector<std::vector<Edge>> trees() const {
    std::vector<Edge> edges;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (size_t j = i + 1; j < nodes_.size(); ++j) {
        if (Islands::meet(island(nodes_[i]), island(nodes_[j]))) edges.push_back({nodes_[i], nodes_[j], {}});
      }
    }
    parallel_each(edges.size(), threads(), [&](size_t e) {
      edges[e].shift = find_shift(islands_.intake(), island(edges[e].a), island(edges[e].b));
    });
    std::ranges::stable_sort(edges, {}, [](const Edge& each) { return each.shift.log_chance; });
    std::vector<uint32_t> root(islands_.all().size());
    std::iota(root.begin(), root.end(), 0u);
    const auto find = [&](uint32_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    std::vector<Edge> kept;
    for (const Edge& each : edges) {
      if (each.shift.log_chance >= 0 || find(each.a) == find(each.b)) continue;
      root[find(each.b)] = find(each.a);
      kept.push_back(each);
    }
    std::vector<std::vector<Edge>> out;
    for (const uint32_t node : nodes_) {
      if (find(node) != node) continue;
      std::vector<Edge>& tree = out.emplace_back();
      std::ranges::copy_if(kept, std::back_inserter(tree), [&](const Edge& each) { return find(each.a) == node; });
    }
    return out;
  }

  bool prove(std::vector<Edge> tree) {
    if (tree.size() < 2) return false;  // two islands were tried by themselves
    std::vector<FoundShift> found(tree.size());
    const std::vector<Placed> placed = place(tree);
    parallel_each(tree.size(), threads(), [&](size_t e) {
      const std::vector<uint32_t> side = side_of(tree, e);
      const auto is_there = [&](const Placed& each) { return std::ranges::binary_search(side, each.node); };
      found[e] = find_shift(islands_.intake(), merged(placed, is_there, false), merged(placed, is_there, true));
      // The shift that the tree has.
      const bool same = std::abs(found[e].line.ahead_ns) < 3 * tree[e].shift.noise.places_ns;
      if (!same) found[e].log_chance = 0;
    });
    const auto worst = std::ranges::max_element(found, {}, &FoundShift::log_chance);
    if (worst->log_chance < kLogUnlikely) {
      for (size_t i = 1; i < placed.size(); ++i) {
        islands_.join(placed[0].node, placed[i].node, placed[i].line, placed[i].noise);
      }
      return true;
    }
    const auto e = static_cast<size_t>(worst - found.begin());
    const std::vector<uint32_t> side = side_of(tree, e);
    std::vector<Edge> here;
    std::vector<Edge> there;
    for (size_t i = 0; i < tree.size(); ++i) {
      if (i != e) (std::ranges::binary_search(side, tree[i].a) ? there : here).push_back(tree[i]);
    }
    const bool first = prove(std::move(here));
    return prove(std::move(there)) || first;
  }

  // An island of a tree with its clock, seen from that of the first one.
  struct Placed {
    uint32_t node = 0;
    ClockLine line;
    EndNoise noise;
  };

  static std::vector<Placed> place(const std::vector<Edge>& tree) {
    std::vector<Placed> out = {{tree[0].a, {}, {}}};
    for (size_t done = 0; done < out.size(); ++done) {
      const Placed from = out[done];
      for (const Edge& each : tree) {
        const bool forwards = each.a == from.node;
        if (!forwards && each.b != from.node) continue;
        const uint32_t to = forwards ? each.b : each.a;
        if (std::ranges::any_of(out, [&](const Placed& p) { return p.node == to; })) continue;
        const ClockLine& line = each.shift.line;
        out.push_back({to, (forwards ? line : line.reversed()).on(from.line), each.shift.noise});
      }
    }
    return out;
  }

  // The islands beyond an edge, in order of their numbers.
  static std::vector<uint32_t> side_of(const std::vector<Edge>& tree, size_t edge) {
    std::vector<uint32_t> out = {tree[edge].b};
    for (size_t done = 0; done < out.size(); ++done) {
      for (size_t e = 0; e < tree.size(); ++e) {
        if (e == edge) continue;
        const uint32_t next = tree[e].a == out[done] ? tree[e].b : tree[e].b == out[done] ? tree[e].a : UINT32_MAX;
        if (next != UINT32_MAX && std::ranges::find(out, next) == out.end()) out.push_back(next);
      }
    }
    std::ranges::sort(out);
    return out;
  }

  template <typename IsThere>
  Island merged(const std::vector<Placed>& placed, const IsThere& is_there, bool there) const {
    Island out;
    for (const Placed& each : placed) {
      if (is_there(each) != there) continue;
      Island own = island(each.node);
      move_island(own, each.line);
      islands_.add_places(out, std::move(own), each.noise);
    }
    return out;
  }

  const Island& island(uint32_t node) const { return islands_.all()[node]; }
  static unsigned threads() { return std::max(1u, std::thread::hardware_concurrency()); }

  Islands& islands_;
  std::vector<uint32_t> nodes_;
};

}  // namespace

void join_together(Islands& islands) {
  // More may be proved alone once some are together.
  if (TogetherFinder(islands).run()) islands.join_all();
}

}  // namespace firelane::ranks
