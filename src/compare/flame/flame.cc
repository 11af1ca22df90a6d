#include "compare/flame/flame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "analyze/ops/flame.h"
#include "analyze/verdict/study.h"
#include "compare/run/run.h"

namespace firelane::compare {

namespace {

enum Side : uint8_t { kBefore, kAfter };

// Frames of both sides by name; node 0 is above all.
class BothTrees {
 public:
  struct Node {
    std::string_view name;
    std::array<double, 2> ns{};
    std::unordered_map<std::string_view, uint32_t> below;
    double width() const { return (ns[kBefore] + ns[kAfter]) / 2; }
  };

  BothTrees() : nodes_(1) {}

  uint32_t child(uint32_t parent, std::string_view name) {
    const auto [at, added] = nodes_[parent].below.try_emplace(name, static_cast<uint32_t>(nodes_.size()));
    const uint32_t node = at->second;
    if (added) nodes_.push_back({.name = name});
    return node;
  }
  Node& operator[](uint32_t node) { return nodes_[node]; }
  const Node& operator[](uint32_t node) const { return nodes_[node]; }

 private:
  std::vector<Node> nodes_;
};

// A step's annotation has its number: those of all steps are one frame.
std::string_view frame_name(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep";
  return name.starts_with(kStep) && name.substr(kStep.size()).starts_with('#') ? name.substr(0, kStep.size()) : name;
}

// Names are views into the models, and into the summaries that the traces keep.
void add_host(const StudiedTrace& trace, analyze::FlameBy by, double share, Side side, BothTrees& out) {
  const Model& model = trace.model();
  const analyze::StepList& steps = trace.get<analyze::study>().steps;
  const analyze::StackTree tree = analyze::flame_tree(model, {.by = by, .range = steps.window});
  share /= static_cast<double>(std::max<int64_t>(1, steps.judged));
  std::vector<uint32_t> node_of(tree.size(), 0);
  out[0].ns[side] += static_cast<double>(tree[0].width_ns) * share;
  for (uint32_t node = 1; node < tree.size(); ++node) {
    node_of[node] = out.child(node_of[tree[node].parent], frame_name(model.text(tree[node].name)));
    out[node_of[node]].ns[side] += static_cast<double>(tree[node].width_ns) * share;
  }
}

void add_work(const StudiedTrace& trace, bool with_modules, double share, Side side, BothTrees& out) {
  for (const WorkGroup& group : trace.get<summarize>().work) {
    const double ns = group.total_ns * share;
    uint32_t node = 0;
    out[0].ns[side] += ns;
    for (const std::string* name : {&group.module, &group.op, &group.kernel}) {
      if (name->empty() || (name == &group.module && !with_modules)) continue;
      node = out.child(node, *name);
      out[node].ns[side] += ns;
    }
  }
}

void lay_out(const BothTrees& trees, size_t bins, FlameDifference& out) {
  const double narrow_ns = trees[0].width() / static_cast<double>(std::max<size_t>(1, bins));
  const auto change_of = [](const BothTrees::Node& node, uint32_t depth) {
    return FlameChange{.depth = depth,
                       .name = std::string(node.name),
                       .before_ns = std::llround(node.ns[kBefore]),
                       .after_ns = std::llround(node.ns[kAfter])};
  };
  // A node whose children come next, or the frame that stands for the narrow ones.
  struct Place {
    uint32_t node = 0;
    FlameChange change;
  };
  std::vector<Place> open{{}};
  while (!open.empty()) {
    Place place = std::move(open.back());
    open.pop_back();
    if (place.node != 0 || place.change.merged > 0) out.nodes.push_back(place.change);
    if (place.change.merged > 0) continue;
    const uint32_t depth = place.node == 0 ? 0 : place.change.depth + 1;
    std::vector<uint32_t> wide;
    BothTrees::Node rest;
    int64_t merged = 0;
    for (const auto& [name, child] : trees[place.node].below) {
      if (trees[child].width() >= narrow_ns && trees[child].width() > 0) {
        wide.push_back(child);
        continue;
      }
      ++merged;
      for (const Side side : {kBefore, kAfter}) rest.ns[side] += trees[child].ns[side];
    }
    if (merged > 0 && rest.width() > 0) {
      open.push_back({.change = change_of(rest, depth)});
      open.back().change.merged = merged;
    }
    // The last that is pushed is the next that is shown.
    std::sort(wide.begin(), wide.end(), [&](uint32_t a, uint32_t b) {
      return trees[a].width() != trees[b].width() ? trees[a].width() < trees[b].width() : trees[a].name > trees[b].name;
    });
    for (const uint32_t child : wide) open.push_back({child, change_of(trees[child], depth)});
  }
}

bool has_modules(std::span<const StudiedTrace* const> side) {
  return std::all_of(side.begin(), side.end(), [](const StudiedTrace* trace) {
    const std::vector<WorkGroup>& work = trace->get<summarize>().work;
    return std::any_of(work.begin(), work.end(), [](const WorkGroup& group) { return !group.module.empty(); });
  });
}

bool has_frames(std::span<const StudiedTrace* const> side, analyze::FlameBy by) {
  return std::any_of(side.begin(), side.end(),
                     [&](const StudiedTrace* trace) { return analyze::has_frames(trace->model(), by); });
}

}  // namespace

FlameDifference flame_difference(std::span<const StudiedTrace* const> before,
                                 std::span<const StudiedTrace* const> after, const FlameOptions& options) {
  FlameDifference out;
  analyze::FlameBy frames = options.by == FlameBy::kStack ? analyze::FlameBy::kStack : analyze::FlameBy::kOp;
  if (options.by == FlameBy::kStack && (!has_frames(before, frames) || !has_frames(after, frames))) {
    out.note = "Python frames were not recorded on both sides; ops are shown instead";
    frames = analyze::FlameBy::kOp;
  }
  // Recorded on one side only, modules would make all of its work look new.
  const bool with_modules = options.by == FlameBy::kDevice && has_modules(before) && has_modules(after);
  BothTrees trees;
  const auto add_side = [&](std::span<const StudiedTrace* const> traces, Side side, double scale) {
    const double share = scale / static_cast<double>(traces.size());
    for (const StudiedTrace* trace : traces) {
      if (options.by == FlameBy::kDevice) {
        add_work(*trace, with_modules, share, side, trees);
      } else {
        add_host(*trace, frames, share, side, trees);
      }
    }
  };
  add_side(before, kBefore, 1);
  add_side(after, kAfter, 1 / options.batch_ratio);
  out.before_ns = std::llround(trees[0].ns[kBefore]);
  out.after_ns = std::llround(trees[0].ns[kAfter]);
  lay_out(trees, options.bins, out);
  return out;
}

}  // namespace firelane::compare
