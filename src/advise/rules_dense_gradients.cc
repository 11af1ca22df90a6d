// Dense gradients of large embedding tables: zeros are written, added and updated for rows that no sample looked up.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr int64_t kLeastTableBytes = int64_t{1} << 20;  // of a table
constexpr int64_t kRowsForEach = 8;                     // rows of the table for each that is looked up

// A table whose gradient is written whole.
struct Table {
  analyze::Dims dims;
  int64_t bytes = 0;
  int64_t looked_up = 0;  // indices of one call, at most
};

// The table of an op that computes a dense gradient; {} of others, or where its size was not recorded.
std::optional<Table> table_of(const Model& model, Row op) {
  const std::string_view name = model.text(model.host_slices.name[op]);
  const bool is_bag = name == "aten::_embedding_bag_dense_backward";
  if (!is_bag && name != "aten::embedding_dense_backward") return {};
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.concrete_inputs[detail] == kNoString) return {};
  const std::vector<std::string> numbers =
      analyze::parse_input_strings(model.text(model.op_details.concrete_inputs[detail]));
  const size_t place = is_bag ? 5 : 2;  // of num_weights
  const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, op);
  if (numbers.size() <= place || inputs.size() < 2 || inputs[0].dims.empty()) return {};
  const std::optional<analyze::Dims> rows = analyze::parse_int_list(numbers[place]);
  if (!rows || rows->size() != 1) return {};
  Table table{.dims = {rows->front(), inputs[0].dims.back()}, .looked_up = std::max<int64_t>(1, inputs[1].elements)};
  table.bytes = table.dims[0] * table.dims[1] * std::max<int64_t>(1, inputs[0].element_bytes);
  return table;
}

// The part of an op's data that is tables of these shapes: of all tensors that it takes, those in lists too.
double part_of_tables(std::string_view dims, const std::map<analyze::Dims, Table>& tables) {
  double all = 0;
  double of_tables = 0;
  for (size_t open = dims.find('['); open != std::string_view::npos; open = dims.find('[', open + 1)) {
    const size_t next = dims.find_first_of("[]", open + 1);
    if (next == std::string_view::npos || dims[next] != ']') continue;
    const auto parsed = analyze::parse_input_dims("[" + std::string(dims.substr(open, next - open + 1)) + "]");
    if (parsed.empty() || parsed[0].empty()) continue;
    double elements = 1;
    for (const int64_t size : parsed[0]) elements *= static_cast<double>(size);
    all += elements;
    if (tables.contains(parsed[0])) of_tables += elements;
  }
  return all == 0 ? 0 : of_tables / all;
}

// Operators of the judged steps that go through a whole table, and the part of their time that it takes.
struct Passes {
  std::map<Row, double> part;  // by op: the one that computes the gradient, or an outermost one
  int64_t gradients = 0;
};

Passes passes_over(const Context& context, const std::map<analyze::Dims, Table>& tables) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& phases = context.trace.get<analyze::find_phases>();
  Passes passes;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (const std::optional<Table> table = table_of(model, row); table && tables.contains(table->dims)) {
      const auto rest = static_cast<double>(table->looked_up) / static_cast<double>(table->dims[0]);
      passes.part[row] = 1 - rest;
      ++passes.gradients;
      continue;
    }
    const std::string_view name = model.text(host.name[row]);
    const bool looks_up = contains(name, "embedding") && !contains(name, "backward");
    if (looks_up || !is_outermost_op(host, row) || phases.host[row] == analyze::Phase::kBackward) continue;
    const double part = part_of_tables(input_dims_text(model, row), tables);
    if (part > 0) passes.part[row] = part;
  }
  return passes;
}

std::vector<Finding> find_dense_gradients(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::map<analyze::Dims, Table> tables;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const std::optional<Table> table = table_of(model, row);
    if (!table || table->bytes < kLeastTableBytes || table->dims[0] < kRowsForEach * table->looked_up) continue;
    Table& known = tables.try_emplace(table->dims, *table).first->second;
    known.looked_up = std::max(known.looked_up, table->looked_up);
  }
  if (tables.empty()) return {};
  const Passes passes = passes_over(context, tables);
  Evidence evidence(context);
  std::vector<Row> ops;
  for (const auto& [op, part] : passes.part) {
    ops.push_back(op);
    // A sparse gradient has to be made as well: indices are sorted and joined, where they are few.
    constexpr double kSparse = 0.1;
    if (!context.has_device_work) evidence.add_call(op, 1 - part * (1 - kSparse), 1 - part);
  }
  for (Row work = 0; context.has_device_work && work < model.device_slices.size(); ++work) {
    Row op = model.device_slices.launch[work];
    while (op != kNoRow && !passes.part.contains(op)) op = host.parent[op];
    if (op == kNoRow) continue;
    const double part = passes.part.at(op);
    evidence.add_device(work, 1 - 0.95 * part, 1 - part);
  }
  if (evidence.empty()) return {};
  const auto largest = std::max_element(tables.begin(), tables.end(),
                                        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  const Table& table = largest->second;
  Finding finding{
      .id = "dense-gradients",
      .try_text =
          "use sparse gradients: they hold only the rows that were looked up, and the optimizer updates only these",
      .try_code = "nn.Embedding(rows, size, sparse=True)  # with SGD, Adagrad or SparseAdam for it",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare the loss: momentum and weight decay no longer apply to rows that were not looked up"};
  evidence.fill(finding);
  finding.events = passes.gradients;
  finding.title = "the gradient of a table of " + std::to_string(table.dims[0]) + " rows (" + short_bytes(table.bytes) +
                  ") is dense, for at most " + std::to_string(table.looked_up) +
                  " that are looked up: writing it and updating all rows takes " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> dense_gradients_rules() {
  return {
      {"dense-gradients", "waste", 0.03, true,
       "The gradient of an embedding table has a value for every row, even for rows that no sample of the batch\n"
       "looked up: it is filled with zeros first, and optimizer, clipping and scaling process all rows.\n\n"
       "This finding covers tables of 1 MiB and more with at least eight rows per index looked up: the operators\n"
       "that compute their gradient (embedding_dense_backward) and all that take tensors of their shape outside the\n"
       "backward pass. Needs shapes. The gain is a replay with their cost scaled to the rows looked up.\n\n"
       "What to do: sparse=True for nn.Embedding or nn.EmbeddingBag, with SGD, Adagrad or SparseAdam for the table.\n\n"
       "When not: the optimizer's momentum or weight decay has to reach rows that are not looked up, or gradients\n"
       "are all-reduced between ranks as dense tensors.",
       find_dense_gradients},
  };
}

}  // namespace firelane::advise
