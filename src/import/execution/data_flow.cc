#include "import/execution/data_flow.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace firelane::importer {

namespace {

size_t find_node(const ExecutionTrace& trace, int64_t id) {
  const auto found = std::lower_bound(trace.nodes.begin(), trace.nodes.end(), id,
                                      [](const ExecutionNode& node, int64_t wanted) { return node.id < wanted; });
  return found == trace.nodes.end() || found->id != id ? kNoNode : static_cast<size_t>(found - trace.nodes.begin());
}

class DataFlow {
 public:
  explicit DataFlow(const ExecutionTrace& trace)
      : trace_(trace), parents_(find_parents(trace)), last_inside_(trace.nodes.size()) {
    for (size_t node = 0; node < trace.nodes.size(); ++node) last_inside_[node] = node;
    for (size_t node = trace.nodes.size(); node-- > 0;) {
      if (parents_[node] == kNoNode) continue;
      size_t& of_parent = last_inside_[parents_[node]];
      of_parent = std::max(of_parent, last_inside_[node]);
    }
  }

  std::vector<NodeDependency> run() {
    for (size_t node = 0; node < trace_.nodes.size(); ++node) {
      begin(node);
      for (size_t ended = node; ended != kNoNode && last_inside_[ended] == node; ended = parents_[ended]) end(ended);
    }
    return std::move(out_);
  }

 private:
  struct Storage {
    size_t writer = kNoNode;
    std::vector<size_t> readers;  // since then
  };

  bool has_children(size_t node) const { return last_inside_[node] != node; }
  // Neither what it reads nor what it writes is known but by those that it calls.
  bool is_opaque(size_t node) const { return trace_.nodes[node].schema.empty() && has_children(node); }
  // Inside of a call with a schema that one says what is changed (aten::detach calls detach).
  bool changes_all(size_t node) const {
    const size_t parent = parents_[node];
    const bool is_told = parent != kNoNode && !trace_.nodes[parent].schema.empty();
    return trace_.nodes[node].schema.empty() && !has_children(node) && !is_told;
  }

  // Ids of several threads interleave: a range of them says nothing.
  bool contains(size_t outer, size_t node) const {
    while (node != kNoNode && node > outer) node = parents_[node];
    return node == outer;
  }

  void begin(size_t node) {
    first_of_node_ = out_.size();
    const ExecutionNode& self = trace_.nodes[node];
    if (is_root_node(self)) return;
    if (is_opaque(node)) {
      out_.push_back({.node = node, .use = DataUse::kUnknown});
      return;
    }
    for (const NodeTensor& input : self.inputs) {
      Storage& storage = storages_[input.storage];
      add(node, storage.writer, DataUse::kRead, input.bytes);
      if (input.is_written || changes_all(node)) {
        for (const size_t reader : storage.readers) add(node, reader, DataUse::kOverwrite, input.bytes);
      } else if (storage.readers.empty() || storage.readers.back() != node) {
        storage.readers.push_back(node);
      }
    }
    for (const int64_t id : self.data_deps) {
      const size_t producer = find_node(trace_, id);
      if (producer < node) add(node, producer, DataUse::kRead, kNoNumber);
    }
    keep_one_of_each();
  }

  void end(size_t node) {
    const ExecutionNode& self = trace_.nodes[node];
    if (is_opaque(node) || is_root_node(self)) return;
    for (const NodeTensor& input : self.inputs) {
      if (input.is_written || changes_all(node)) write(node, input.storage);
    }
    for (const NodeTensor& output : self.outputs) {
      const auto by_storage = [](const NodeTensor& a, const NodeTensor& b) { return a.storage < b.storage; };
      const bool is_view = std::binary_search(self.inputs.begin(), self.inputs.end(), output, by_storage);
      if (!is_view) write(node, output.storage);
    }
  }

  // What a call inside of the node has written is its work: whoever reads it waits for that one alone. But where the
  // one inside only made room (aten::empty), the node itself fills it.
  void write(size_t node, int64_t id) {
    Storage& storage = storages_[id];
    const bool by_child = storage.writer != kNoNode && storage.writer != node && contains(node, storage.writer);
    if (by_child && !only_makes_room(storage.writer)) return;
    storage.writer = node;
    storage.readers.clear();
  }

  bool only_makes_room(size_t node) const {
    const std::string_view name = trace_.nodes[node].name;
    return name.starts_with("aten::empty") || name.starts_with("aten::new_empty") || name == "aten::resize_" ||
           name == "aten::set_";
  }

  void add(size_t node, size_t producer, DataUse use, int64_t bytes) {
    if (producer == node) return;
    // A caller and those it calls are ordered by that.
    if (producer != kNoNode && contains(producer, node)) return;
    out_.push_back({.node = node, .producer = producer, .use = use, .bytes = bytes});
  }

  void keep_one_of_each() {
    const auto begin = out_.begin() + static_cast<std::ptrdiff_t>(first_of_node_);
    const auto key = [](const NodeDependency& each) { return std::tuple(each.producer, each.use); };
    std::stable_sort(begin, out_.end(), [&](const NodeDependency& a, const NodeDependency& b) {
      return key(a) != key(b) ? key(a) < key(b) : a.bytes > b.bytes;
    });
    out_.erase(std::unique(begin, out_.end(),
                           [&](const NodeDependency& a, const NodeDependency& b) { return key(a) == key(b); }),
               out_.end());
  }

  const ExecutionTrace& trace_;
  std::vector<size_t> parents_;
  std::vector<size_t> last_inside_;  // by node, the last of those that it calls, directly or not; itself of a leaf
  std::unordered_map<int64_t, Storage> storages_;
  std::vector<NodeDependency> out_;
  size_t first_of_node_ = 0;
};

}  // namespace

std::vector<size_t> find_parents(const ExecutionTrace& trace) {
  constexpr uint16_t kMostCallDepth = 1024;  // as deep as slices nest; no program calls deeper
  std::vector<size_t> parents(trace.nodes.size(), kNoNode);
  std::vector<uint16_t> depth(trace.nodes.size(), 0);
  for (size_t node = 0; node < trace.nodes.size(); ++node) {
    const size_t parent = find_node(trace, trace.nodes[node].parent);
    if (parent >= node || depth[parent] >= kMostCallDepth) continue;
    parents[node] = parent;
    depth[node] = static_cast<uint16_t>(depth[parent] + 1);
  }
  return parents;
}

std::vector<NodeDependency> find_dependencies(const ExecutionTrace& trace) { return DataFlow(trace).run(); }

}  // namespace firelane::importer
