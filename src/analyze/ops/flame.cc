#include "analyze/ops/flame.h"

#include <algorithm>

#include "analyze/common/self_time.h"

namespace firelane::analyze {

namespace {

constexpr uint32_t kMostInvertedDepth = 200;  // callers shown above a leaf

bool is_frame(HostKind kind, FlameBy by) {
  if (by == FlameBy::kSample) return false;
  if (by == FlameBy::kStack) return kind == HostKind::kPython;
  return kind == HostKind::kOp || kind == HostKind::kAnnotation || is_call(kind);
}

// Calls visit(SweptSlice) for the frames of one lane that have a length in the range.
template <typename Visit>
void visit_frames(const Model& model, LaneId lane, const FlameOptions& options, const Visit& visit) {
  const auto pick = [&](Row row) { return is_frame(model.host_slices.kind[row], options.by); };
  sweep_lane(model, lane, options.range, pick, [&](const SweptSlice& slice) {
    if (slice.part.start_ns < slice.part.end_ns) visit(slice);
  });
}

int64_t count_frames(const Model& model, LaneId lane, FlameBy by) {
  int64_t count = 0;
  const auto l = static_cast<size_t>(lane);
  for (Row row = model.lanes.host_begin[l]; row < model.lanes.host_end[l]; ++row) {
    count += is_frame(model.host_slices.kind[row], by);
  }
  return count;
}

std::vector<LaneId> threads(const Model& model) {
  std::vector<LaneId> out;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    if (model.lanes.kind[lane] == LaneKind::kThread) out.push_back(static_cast<LaneId>(lane));
  }
  return out;
}

// As it happened, on one lane. A narrow frame joins the narrow ones before it below the same frame.
class TimeOrder {
 public:
  TimeOrder(const Model& model, LaneId lane, const FlameOptions& options, FlameGraph& out)
      : begin_(model.lanes.host_begin[static_cast<size_t>(lane)]), out_(out) {
    out.total_ns = options.range.end_ns - options.range.start_ns;
    narrow_ns_ = std::max<int64_t>(1, out.total_ns / static_cast<int64_t>(std::max<size_t>(1, options.bins)));
    node_of_.resize(model.lanes.host_end[static_cast<size_t>(lane)] - begin_, kNoNode);
    visit_frames(model, lane, options, [&](const SweptSlice& slice) { add(slice, model.host_slices.name[slice.row]); });
  }

 private:
  static constexpr uint32_t kNoNode = UINT32_MAX;

  void add(const SweptSlice& slice, StringId name) {
    const Interval& part = slice.part;
    const uint32_t parent = slice.around == kNoRow ? kNoNode : node_of_[slice.around - begin_];
    if (slice.around != kNoRow && parent == kNoNode) return;  // inside of a merged one
    const uint32_t depth = parent == kNoNode ? 0 : out_.nodes[parent].depth + 1;
    const int64_t width = part.end_ns - part.start_ns;
    if (parent != kNoNode) out_.nodes[parent].self_ns -= slice.covers_ns;
    if (merged_.size() <= depth) merged_.resize(depth + 1, kNoNode);
    uint32_t& merged = merged_[depth];
    if (width < narrow_ns_) {
      if (merged != kNoNode) {
        FlameNode& node = out_.nodes[merged];
        const bool is_near = part.start_ns - (node.start_ns + node.width_ns) < narrow_ns_;
        if (is_near && owner_[merged] == parent) {
          node.width_ns = part.end_ns - node.start_ns;
          node.self_ns += width;
          ++node.count;
          ++node.merged;
          return;
        }
      }
      merged = push({depth, part.start_ns, width, width, 1, kNoString, 1}, parent);
      return;
    }
    merged = kNoNode;
    node_of_[slice.row - begin_] = push({depth, part.start_ns, width, width, 1, name, 0}, parent);
  }
  uint32_t push(const FlameNode& node, uint32_t parent) {
    out_.nodes.push_back(node);
    owner_.push_back(parent);
    return static_cast<uint32_t>(out_.nodes.size() - 1);
  }

  Row begin_;
  FlameGraph& out_;
  int64_t narrow_ns_ = 1;
  std::vector<uint32_t> node_of_;  // of each slice of the lane that has one of its own
  std::vector<uint32_t> owner_;    // parent of each node
  std::vector<uint32_t> merged_;   // per depth: the merged node that may still grow
};

void add_lane(const Model& model, LaneId lane, const FlameOptions& options, StackTree& tree) {
  const Row begin = model.lanes.host_begin[static_cast<size_t>(lane)];
  std::vector<uint32_t> node_of(model.lanes.host_end[static_cast<size_t>(lane)] - begin, 0);
  visit_frames(model, lane, options, [&](const SweptSlice& slice) {
    const uint32_t parent = slice.around == kNoRow ? 0 : node_of[slice.around - begin];
    const uint32_t node = tree.child(parent, model.host_slices.name[slice.row]);
    node_of[slice.row - begin] = node;
    const int64_t width = slice.part.end_ns - slice.part.start_ns;
    tree[node].width_ns += width;
    tree[node].self_ns += width;
    ++tree[node].count;
    if (parent == 0) {
      tree[0].width_ns += width;
    } else {
      tree[parent].self_ns -= slice.covers_ns;
    }
  });
}

// Frames of a stack, outermost first.
std::vector<StringId> frames_of(const Model& model, StringId stack) {
  std::vector<StringId> frames;
  const std::string_view text = model.text(stack);
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    if (const StringId frame = model.strings.find(text.substr(at, end - at)); frame != kNoString)
      frames.push_back(frame);
    at = end + 1;
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

void add_samples(const Model& model, const FlameOptions& options, StackTree& tree) {
  const StackSamples& samples = model.stack_samples;
  for (Row row = 0; row < samples.size(); ++row) {
    if (options.lane && *options.lane != samples.lane[row]) continue;
    const int64_t time_ns = samples.time_ns[row];
    if (time_ns < options.range.start_ns || time_ns >= options.range.end_ns) continue;
    const int64_t weight_ns = std::max<int64_t>(0, samples.weight_ns[row]);
    tree[0].width_ns += weight_ns;
    uint32_t node = 0;
    for (const StringId frame : frames_of(model, samples.stack[row])) {
      node = tree.child(node, frame);
      tree[node].width_ns += weight_ns;
      ++tree[node].count;
    }
    if (node != 0) tree[node].self_ns += weight_ns;
  }
}

// Leaves first: each stack's self time, from its innermost frame outwards.
StackTree inverted(const StackTree& stacks) {
  StackTree out;
  for (uint32_t leaf = 1; leaf < stacks.size(); ++leaf) {
    const int64_t self = stacks[leaf].self_ns;
    if (self <= 0) continue;
    out[0].width_ns += self;
    uint32_t node = 0;
    uint32_t depth = 0;
    for (uint32_t at = leaf; at != 0 && depth < kMostInvertedDepth; at = stacks[at].parent, ++depth) {
      node = out.child(node, stacks[at].name);
      out[node].width_ns += self;
      out[node].count += stacks[leaf].count;
    }
    out[node].self_ns += self;
  }
  return out;
}

// Lays a tree out, widest first; the narrow children of a node become one.
void lay_out(const StackTree& tree, size_t bins, FlameGraph& out) {
  out.total_ns = tree[0].width_ns;
  const int64_t narrow_ns = std::max<int64_t>(1, out.total_ns / static_cast<int64_t>(std::max<size_t>(1, bins)));
  std::vector<std::vector<uint32_t>> children(tree.size());
  for (uint32_t node = 1; node < tree.size(); ++node) children[tree[node].parent].push_back(node);
  struct Place {
    uint32_t node;
    uint32_t depth;  // of its children
    int64_t start_ns;
  };
  std::vector<Place> open{{0, 0, 0}};
  while (!open.empty()) {
    const Place place = open.back();
    open.pop_back();
    std::vector<uint32_t>& below = children[place.node];
    std::stable_sort(below.begin(), below.end(),
                     [&](uint32_t a, uint32_t b) { return tree[a].width_ns > tree[b].width_ns; });
    int64_t start = place.start_ns;
    FlameNode merged{.depth = place.depth};
    for (const uint32_t child : below) {
      const StackTree::Node& node = tree[child];
      if (node.width_ns < narrow_ns) {
        merged.width_ns += node.width_ns;
        merged.count += node.count;
        ++merged.merged;
        continue;
      }
      out.nodes.push_back({place.depth, start, node.width_ns, node.self_ns, node.count, node.name, 0});
      open.push_back({child, place.depth + 1, start});
      start += node.width_ns;
    }
    if (merged.merged == 0 || merged.width_ns == 0) continue;
    merged.start_ns = start;
    merged.self_ns = merged.width_ns;
    out.nodes.push_back(merged);
  }
}

}  // namespace

FlameGraph flame_graph(const Model& model, const FlameOptions& options) {
  FlameGraph out;
  LaneId fullest{};
  int64_t most = 0;
  for (const LaneId lane : threads(model)) {
    const int64_t frames = count_frames(model, lane, options.by);
    if (frames > most) fullest = lane;
    most = std::max(most, frames);
  }
  const bool by_sample = options.by == FlameBy::kSample;
  out.has_frames = by_sample ? model.stack_samples.size() > 0 : most > 0;
  if (!out.has_frames || options.range.start_ns >= options.range.end_ns) return out;
  if (options.order == FlameOrder::kTime && !by_sample) {
    const TimeOrder filled(model, options.lane.value_or(fullest), options, out);
    return out;
  }
  const StackTree tree = flame_tree(model, options);
  lay_out(options.order == FlameOrder::kInverted ? inverted(tree) : tree, options.bins, out);
  return out;
}

StackTree flame_tree(const Model& model, const FlameOptions& options) {
  StackTree tree;
  if (options.by == FlameBy::kSample) {
    add_samples(model, options, tree);
    return tree;
  }
  for (const LaneId lane : threads(model)) {
    if (!options.lane || *options.lane == lane) add_lane(model, lane, options, tree);
  }
  return tree;
}

bool has_frames(const Model& model, FlameBy by) {
  if (by == FlameBy::kSample) return model.stack_samples.size() > 0;
  const std::vector<LaneId> lanes = threads(model);
  return std::any_of(lanes.begin(), lanes.end(), [&](LaneId lane) { return count_frames(model, lane, by) > 0; });
}

}  // namespace firelane::analyze
