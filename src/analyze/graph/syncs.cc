#include "analyze/graph/syncs.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "base/text.h"

namespace firelane::analyze {

namespace {

struct Askers {
  Row outer_op = kNoRow;
  Row python = kNoRow;
  bool item = false;
  bool nonzero = false;
  bool copies = false;
};

// Who is around a call; the slices around many calls are looked at once.
class AskerFinder {
 public:
  explicit AskerFinder(const Model& model) : model_(model) {}

  Askers of(Row call) {
    const HostSlices& slices = model_.host_slices;
    Askers found;
    around_.clear();
    for (Row row = slices.parent[call]; row != kNoRow; row = slices.parent[row]) {
      if (const auto known = known_.find(row); known != known_.end()) {
        found = known->second;
        break;
      }
      around_.push_back(row);
    }
    for (; !around_.empty(); around_.pop_back()) {  // from the outside in
      add(around_.back(), found);
      known_.emplace(around_.back(), found);
    }
    return found;
  }

 private:
  void add(Row row, Askers& found) const {
    const HostSlices& slices = model_.host_slices;
    if (slices.kind[row] == HostKind::kPython) found.python = row;
    if (slices.kind[row] != HostKind::kOp) return;
    const std::string_view name = model_.text(slices.name[row]);
    if (found.outer_op == kNoRow) found.outer_op = row;
    found.item |= name == "aten::item" || name == "aten::_local_scalar_dense" || name == "aten::is_nonzero";
    found.nonzero |= contains(name, "nonzero") || contains(name, "unique") || contains(name, "masked_select") ||
                     name == "aten::index" || name == "aten::index_put_" || name == "aten::_index_put_impl_";
    found.copies |= name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::to";
  }

  const Model& model_;
  std::unordered_map<Row, Askers> known_;  // of a slice, itself included
  std::vector<Row> around_;
};

SyncReason reason_of(const Model& model, CallKind kind, const Askers& askers, const CopyKinds& awaited) {
  if (kind == CallKind::kFree) return SyncReason::kFree;
  if (askers.item) return SyncReason::kItem;
  if (askers.nonzero) return SyncReason::kNonzero;
  const bool copies = askers.copies || kind == CallKind::kCopy;
  if (copies) {
    return awaited.direction == CopyDirection::kHtoD ? SyncReason::kPageableCopy : SyncReason::kCopyToHost;
  }
  if (askers.python != kNoRow && contains(model.text(model.host_slices.name[askers.python]), "torch/profiler/")) {
    return SyncReason::kRecorder;
  }
  return askers.outer_op == kNoRow ? SyncReason::kSynchronize : SyncReason::kOther;
}

}  // namespace

std::string_view name_of(SyncReason reason) {
  static constexpr std::array<std::string_view, kSyncReasonCount> kNames = {
      "item", "nonzero", "copy_to_host", "pageable_copy", "synchronize", "free", "recorder", "other"};
  return kNames[static_cast<size_t>(reason)];
}

SyncTable sync_table(const Model& model, const Graph& graph, const Interval& window) {
  SyncTable table;
  CallKinds kinds(model);
  AskerFinder finder(model);
  for (NodeId node = 0; node < graph.nodes.size(); ++node) {
    const GraphNode& end = graph.nodes[node];
    // The end of a blocking call is the host moment that has sync edges, or that of a call which found none.
    if (end.is_device() || end.row == kNoRow || end.time_ns != model.host_slices.end_ns(end.row)) continue;
    const CallKind kind = kinds.of(end.row);
    int64_t awaited_end = INT64_MIN;
    CopyKinds awaited;
    bool is_queue_full = false;
    for (size_t e = graph.edges_begin(node); e < graph.edges_end(node); ++e) {
      is_queue_full |= graph.edges[e].kind == EdgeKind::kQueue;
      if (graph.edges[e].kind != EdgeKind::kSync) continue;
      const GraphNode& work = graph.nodes[graph.edges[e].source];
      if (work.time_ns + work.duration_ns <= awaited_end) continue;
      awaited_end = work.time_ns + work.duration_ns;
      awaited = model.copy_kinds(work.row);
    }
    // A copy has a moment at its end only if it waits, also where the device's clock has its copy begin after that.
    const bool is_waiting_copy =
        kind == CallKind::kCopy && !is_queue_full && model.host_slices.duration_ns[end.row] > 0;
    if (awaited_end == INT64_MIN && !is_blocking(kind) && !is_waiting_copy) continue;
    if (!table.rows.empty() && table.rows.back().call == end.row) continue;  // a call of no duration
    const Askers askers = finder.of(end.row);
    const int64_t start = model.host_slices.start_ns[end.row];
    SyncRow row{.call = end.row, .start_ns = start, .duration_ns = end.time_ns - start};
    if (awaited_end > start) row.waited_ns = std::min(end.time_ns, awaited_end) - start;
    row.reason = reason_of(model, kind, askers, awaited);
    row.op = askers.outer_op;
    row.python = askers.python;
    row.in_window = start >= window.start_ns && start < window.end_ns;
    if (row.in_window) {
      ++table.in_window;
      table.duration_ns += row.duration_ns;
      table.waited_ns += row.waited_ns;
    }
    table.rows.push_back(row);
  }
  std::sort(table.rows.begin(), table.rows.end(),
            [](const SyncRow& a, const SyncRow& b) { return a.start_ns < b.start_ns; });
  return table;
}

}  // namespace firelane::analyze
