#include "analyze/graph/data_chain.h"

#include <algorithm>

#include "analyze/common/op_data.h"
#include "model/values.h"

namespace firelane::analyze {

namespace {

class ChainFinder {
 public:
  explicit ChainFinder(const Model& model) : model_(model), data_(model) {
    const OpDetails& ops = model.op_details;
    for (Row detail = 0; detail < ops.size(); ++detail) {
      if (ops.data_node[detail] != kNoNumber && ops.slice[detail] != kNoRow) order_.push_back(detail);
    }
    // The order of the calls' begins.
    std::sort(order_.begin(), order_.end(), [&](Row a, Row b) { return ops.data_node[a] < ops.data_node[b]; });
    place_of_.assign(ops.size(), kNoRow);
    for (Row place = 0; place < order_.size(); ++place) place_of_[order_[place]] = place;
    nodes_.resize(order_.size());
    for (Row place = 0; place < order_.size(); ++place) {
      nodes_[place].parent = parent_of(place);
      nodes_[place].last_inside = place;
    }
    for (size_t place = nodes_.size(); place-- > 0;) {
      if (nodes_[place].parent == kNoRow) continue;
      Row& last = nodes_[nodes_[place].parent].last_inside;
      last = std::max(last, nodes_[place].last_inside);
    }
    weigh();
  }

  DataChain run() {
    out_.ops = static_cast<int64_t>(order_.size());
    for (Row place = 0; place < order_.size(); ++place) {
      begin(place);
      for (Row ended = place; ended != kNoRow && nodes_[ended].last_inside == place; ended = nodes_[ended].parent) {
        end(ended);
      }
    }
    collect_links();
    return std::move(out_);
  }

 private:
  struct Node {
    Row parent = kNoRow;       // place
    Row last_inside = kNoRow;  // place
    int64_t work_ns = 0;
    int64_t ready_ns = 0;
    int64_t done_ns = 0;
    Row ready_by = kNoRow;   // whose data came last
    Row inside_by = kNoRow;  // which of those that it calls was done last
    int64_t inside_ns = 0;
    bool is_done = false;
  };

  Row slice(Row place) const { return model_.op_details.slice[order_[place]]; }

  Row parent_of(Row place) const {
    for (Row row = model_.host_slices.parent[slice(place)]; row != kNoRow; row = model_.host_slices.parent[row]) {
      const HostKind kind = model_.host_slices.kind[row];
      if (kind != HostKind::kOp && kind != HostKind::kAnnotation) continue;
      const Row detail = model_.host_slices.detail[row];
      if (detail == kNoRow || place_of_[detail] == kNoRow) continue;
      return place_of_[detail] < place ? place_of_[detail] : kNoRow;
    }
    return kNoRow;
  }

  void weigh() {
    std::vector<int64_t> device_ns(model_.host_slices.size(), 0);
    for (Row row = 0; row < model_.device_slices.size(); ++row) {
      const Row op = model_.device_slices.op[row];
      if (op != kNoRow && is_device_work(model_.device_slices.kind[row]))
        device_ns[op] += model_.device_slices.duration_ns[row];
    }
    for (Row place = 0; place < nodes_.size(); ++place) {
      if (model_.host_slices.kind[slice(place)] == HostKind::kOp)
        nodes_[place].work_ns += model_.host_slices.duration_ns[slice(place)];
      if (nodes_[place].parent == kNoRow) continue;
      Node& parent = nodes_[nodes_[place].parent];
      if (model_.host_slices.kind[slice(nodes_[place].parent)] == HostKind::kOp)
        parent.work_ns -= model_.host_slices.duration_ns[slice(place)];
    }
    for (Row place = 0; place < nodes_.size(); ++place) {
      Node& node = nodes_[place];
      if (device_ns[slice(place)] > 0) node.work_ns = device_ns[slice(place)];
      node.work_ns = std::max<int64_t>(node.work_ns, 0);
      out_.work_ns += node.work_ns;
    }
  }

  void begin(Row place) {
    Node& node = nodes_[place];
    if (node.parent != kNoRow) {
      node.ready_ns = nodes_[node.parent].ready_ns;
      node.ready_by = nodes_[node.parent].ready_by;
    }
    const auto [first, last] = data_.rows_of(slice(place));
    for (Row row = first; row < last; ++row) {
      const Row producer = model_.data_dependencies.producer[row];
      if (model_.data_dependencies.use[row] == DataUse::kUnknown) {
        ++out_.unknown_ops;
        continue;
      }
      if (producer == kNoRow || place_of_[producer] == kNoRow) {
        ++out_.outside;
        continue;
      }
      ++out_.dependencies;
      const Node& source = nodes_[place_of_[producer]];
      if (!source.is_done || source.done_ns <= node.ready_ns) continue;
      node.ready_ns = source.done_ns;
      node.ready_by = place_of_[producer];
    }
  }

  void end(Row place) {
    Node& node = nodes_[place];
    const bool waits_inside = node.inside_ns > node.ready_ns;
    if (!waits_inside) node.inside_by = kNoRow;
    node.done_ns = std::max(node.ready_ns, node.inside_ns) + node.work_ns;
    node.is_done = true;
    if (node.parent == kNoRow) return;
    Node& parent = nodes_[node.parent];
    if (node.done_ns <= parent.inside_ns) return;
    parent.inside_ns = node.done_ns;
    parent.inside_by = place;
  }

  void collect_links() {
    Row last = kNoRow;
    for (Row place = 0; place < nodes_.size(); ++place) {
      if (last == kNoRow || nodes_[place].done_ns > nodes_[last].done_ns) last = place;
    }
    if (last == kNoRow) return;
    out_.length_ns = nodes_[last].done_ns;
    while (last != kNoRow) {
      const Node& node = nodes_[last];
      if (node.work_ns > 0) out_.links.push_back({slice(last), node.work_ns, node.done_ns});
      last = node.inside_by != kNoRow ? node.inside_by : node.ready_by;
    }
    std::reverse(out_.links.begin(), out_.links.end());
  }

  const Model& model_;
  OpData data_;
  std::vector<Row> order_;     // op_details with a node, in the order of the calls
  std::vector<Row> place_of_;  // by op_details, in order_
  std::vector<Node> nodes_;    // by place
  DataChain out_;
};

}  // namespace

DataChain data_chain(const Model& model) {
  return model.data_dependencies.size() == 0 ? DataChain() : ChainFinder(model).run();
}

}  // namespace firelane::analyze
