// Call stacks as a tree, for flame graphs and folded stacks: equal stacks are one node.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/model.h"

namespace firelane::analyze {

// A node is a name below a parent. Node 0 is the root, above all stacks. Parents stand before their children.
class StackTree {
 public:
  struct Node {
    uint32_t parent = 0;
    StringId name{};
    int64_t width_ns = 0;
    int64_t self_ns = 0;
    int64_t count = 0;
  };

  StackTree() : nodes_(1) {}

  uint32_t child(uint32_t parent, StringId name) {
    const auto [at, added] = node_of_.try_emplace({parent, name}, static_cast<uint32_t>(nodes_.size()));
    if (added) nodes_.push_back({.parent = parent, .name = name});
    return at->second;
  }
  Node& operator[](uint32_t node) { return nodes_[node]; }
  const Node& operator[](uint32_t node) const { return nodes_[node]; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }

 private:
  struct KeyHash {
    size_t operator()(const std::pair<uint32_t, StringId>& key) const {
      return mix_hash(key.first, static_cast<uint32_t>(key.second));
    }
  };
  std::vector<Node> nodes_;
  std::unordered_map<std::pair<uint32_t, StringId>, uint32_t, KeyHash> node_of_;
};

}  // namespace firelane::analyze
