#include "import/execution/read_execution.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "import/content.h"
#include "import/execution/chakra_protobuf.h"
#include "import/execution/data_flow.h"
#include "import/whole.h"
#include "model/assemble.h"

namespace firelane::importer {

namespace {

constexpr int64_t kUserScope = 7;   // at::RecordScope::USER_SCOPE
constexpr int64_t kPlaceNs = 1000;  // of a call, where there are no times

// Where a node stands: by the times of the file, or by the order of the calls.
struct Place {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

int64_t id_of(const ExecutionTrace& trace, size_t node) { return node == kNoNode ? kNoNumber : trace.nodes[node].id; }

bool has_times(const ExecutionTrace& trace) {
  return std::all_of(trace.nodes.begin(), trace.nodes.end(), [](const ExecutionNode& node) {
    return is_root_node(node) || (node.start_ns != kNoNumber && node.duration_ns != kNoNumber);
  });
}

std::vector<Place> places_in_order(const ExecutionTrace& trace) {
  const std::vector<size_t> parents = find_parents(trace);
  const size_t count = trace.nodes.size();
  std::vector<size_t> last_inside(count);
  for (size_t node = count; node-- > 0;) {
    last_inside[node] = std::max(last_inside[node], node);
    if (parents[node] != kNoNode) last_inside[parents[node]] = std::max(last_inside[parents[node]], last_inside[node]);
  }
  std::vector<Place> places(count);
  int64_t now_ns = 0;
  for (size_t node = 0; node < count; ++node) {
    places[node].start_ns = now_ns;
    now_ns += kPlaceNs;
    for (size_t ended = node; ended != kNoNode && last_inside[ended] == node; ended = parents[ended]) {
      if (ended != node) now_ns += kPlaceNs;  // so that it ends after those that it calls
      places[ended].duration_ns = now_ns - places[ended].start_ns;
    }
  }
  return places;
}

class ExecutionRows {
 public:
  explicit ExecutionRows(const ExecutionTrace& trace)
      : trace_(trace), pool_(raw_.pools.emplace_back()), part_(raw_.parts.emplace_back()) {}

  RawTrace run() {
    raw_.info.origin = Origin::kExecutionTrace;
    raw_.info.format = trace_.format + (trace_.schema.empty() ? "" : " " + trace_.schema);
    raw_.info.has_order_only = !has_times(trace_);
    raw_.info.metadata = trace_.metadata;
    raw_.losses = trace_.losses;
    const std::vector<Place> places = raw_.info.has_order_only ? places_in_order(trace_) : std::vector<Place>();
    std::vector<Row> row_of(trace_.nodes.size(), kNoRow);
    for (size_t node = 0; node < trace_.nodes.size(); ++node) {
      const ExecutionNode& self = trace_.nodes[node];
      if (is_root_node(self)) continue;
      row_of[node] = static_cast<Row>(part_.op_details.size());
      add(self, raw_.info.has_order_only ? places[node] : Place{self.start_ns, self.duration_ns});
    }
    for (const NodeDependency& each : find_dependencies(trace_)) {
      part_.data_dependencies.push_back({.producer_node = id_of(trace_, each.producer),
                                         .bytes = each.bytes,
                                         .op = row_of[each.node],
                                         .use = each.use});
    }
    return std::move(raw_);
  }

 private:
  StringId text(const std::string& value) { return value.empty() ? kNoString : pool_.strings.intern(value); }

  void add(const ExecutionNode& node, Place place) {
    const bool is_range = node.scope == kUserScope;
    part_.host_slices.push_back(
        {.start_ns = place.start_ns,
         .duration_ns = place.duration_ns,
         .lane = pool_.lane({.number = trace_.pid == kNoNumber ? 0 : trace_.pid}, {.number = node.thread}),
         .name = pool_.strings.intern(node.name),
         .category = pool_.strings.intern(is_range ? "user_annotation" : "cpu_op"),
         .kind = is_range ? HostKind::kAnnotation : HostKind::kOp,
         .detail = static_cast<Row>(part_.op_details.size())});
    part_.op_details.push_back({.sequence_number = node.sequence < 0 ? kNoNumber : node.sequence,
                                .forward_thread = node.forward_thread <= 0 ? kNoNumber : node.forward_thread,
                                .call_id = node.rf_id,
                                .data_node = node.id,
                                .input_dims = text(node.dims),
                                .input_types = text(node.types),
                                .input_strides = text(node.strides),
                                .concrete_inputs = text(node.concrete)});
    ++part_.event_count;
  }

  const ExecutionTrace& trace_;
  RawTrace raw_;
  RawPool& pool_;
  RawPart& part_;
};

Result<ExecutionTrace> parse_source(ByteSource& source, const ReadRequest& request) {
  FL_TRY(std::string bytes, read_whole_content(source, request));
  const bool is_protobuf = is_chakra_protobuf(std::string_view(bytes).substr(0, kSniffBytes));
  FL_TRY(ExecutionTrace trace, is_protobuf ? parse_chakra_protobuf(bytes, request.name)
                                           : parse_execution_trace(std::move(bytes), request.name));
  trace.losses.add(source.losses());
  trace.losses[Stat::kTruncated] = std::min<uint64_t>(trace.losses[Stat::kTruncated], 1);
  return trace;
}

Result<RawTrace> read_execution(std::unique_ptr<ByteSource> source, const ReadRequest& request) {
  FL_TRY(const ExecutionTrace trace, parse_source(*source, request));
  RawTrace raw = ExecutionRows(trace).run();
  raw.info.content_bytes = trace.content_bytes;
  return raw;
}

// Ops of the trace by what joins them to nodes.
std::unordered_map<int64_t, Row> ops_by_call_id(const Model& model) {
  std::unordered_map<int64_t, Row> found;
  const OpDetails& ops = model.op_details;
  for (Row op = 0; op < ops.size(); ++op) {
    if (ops.slice[op] == kNoRow || ops.call_id[op] == kNoNumber) continue;
    const auto [at, is_new] = found.try_emplace(ops.call_id[op], op);
    if (!is_new) at->second = kNoRow;  // two of the same id: neither is sure
  }
  return found;
}

}  // namespace

Reader chakra_reader() { return {"Chakra execution trace", is_chakra_protobuf, read_execution}; }
Reader execution_reader() { return {"execution trace", is_execution_trace, read_execution}; }

Result<ExecutionTrace> load_execution_trace(const std::string& path) {
  FL_TRY(Content content, open_content(path));
  if (!is_execution_trace(content.begin) && !is_chakra_protobuf(content.begin)) {
    return Error{path + ": not an execution trace (torch.profiler.ExecutionTraceObserver writes one)"};
  }
  return parse_source(*content.source,
                      {.name = path, .file_bytes = content.file_bytes, .is_compressed = content.is_compressed});
}

Result<void> join_execution_trace(const ExecutionTrace& trace, const std::string& path, Model& model) {
  if (is_dump(model.info.origin)) {
    return Error{model.info.path + ": an execution trace can only be joined to a trace with times"};
  }
  const std::unordered_map<int64_t, Row> ops = ops_by_call_id(model);
  if (ops.empty()) {
    return Error{model.info.path +
                 ": its ops have no \"Record function id\", by which an execution trace is joined; record both in one "
                 "run with torch 2.1 or later, or with firelane: profile(execution_trace_observer=...)"};
  }
  std::vector<Row> op_of(trace.nodes.size(), kNoRow);
  JoinedFile joined{.origin = Origin::kExecutionTrace, .path = path};
  int64_t other_names = 0;
  for (size_t node = 0; node < trace.nodes.size(); ++node) {
    if (is_root_node(trace.nodes[node])) continue;
    ++joined.entries;
    const auto found = ops.find(trace.nodes[node].rf_id);
    if (found == ops.end() || found->second == kNoRow) continue;
    const Row slice = model.op_details.slice[found->second];
    if (model.text(model.host_slices.name[slice]) != trace.nodes[node].name) {
      ++other_names;
      continue;
    }
    op_of[node] = found->second;
    ++joined.used;
  }
  if (joined.used == 0 || other_names > joined.used / 10) {
    return Error{path + ": not of the same run as " + model.info.path + ": " + std::to_string(joined.used) + " of " +
                 std::to_string(joined.entries) + " nodes have an op with their id and name"};
  }
  // Sorted by op, as a reader gives them.
  std::vector<RawDataDependency> rows;
  for (const NodeDependency& each : find_dependencies(trace)) {
    if (op_of[each.node] == kNoRow) continue;
    rows.push_back(
        {.producer_node = id_of(trace, each.producer), .bytes = each.bytes, .op = op_of[each.node], .use = each.use});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RawDataDependency& a, const RawDataDependency& b) { return a.op.row < b.op.row; });
  model.data_dependencies.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    model.data_dependencies.set(i, rows[i], [](const auto& value) { return value; });
  }
  for (size_t node = 0; node < trace.nodes.size(); ++node) {
    if (op_of[node] != kNoRow) model.op_details.data_node[op_of[node]] = trace.nodes[node].id;
  }
  link_data(model);
  model.losses.add(trace.losses);
  model.losses[Stat::kNodeWithoutOp] += static_cast<uint64_t>(joined.entries - joined.used);
  model.info.joined.push_back(std::move(joined));
  return {};
}

}  // namespace firelane::importer
