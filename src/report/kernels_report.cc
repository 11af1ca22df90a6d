#include "analyze/device/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/quantity.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

constexpr size_t kNameWidth = 56;
constexpr size_t kOpWidth = 32;

Cell launch_shape(const analyze::Shared<std::array<int32_t, 3>>& shape) {
  using State = analyze::Shared<std::array<int32_t, 3>>::State;
  if (shape.state == State::kUnknown) return {};
  if (shape.state == State::kVaries) return "varies";
  return fmt::format("{}x{}x{}", shape.value[0], shape.value[1], shape.value[2]);
}

Cell op_name(const Model& model, StringId op) {
  if (op == kNoString) return {};
  return std::string(model.text(op));
}

Cell limit_cell(OccupancyLimit limit) {
  if (limit == OccupancyLimit::kUnknown) return {};
  return std::string(name_of(limit));
}

std::vector<Column> kernel_columns() {
  return {
      {"kind", "Kind"},
      {"name", "Name", Kind::kText, Align::kByKind, kNameWidth},
      {"op", "Op", Kind::kText, Align::kByKind, kOpWidth, true},
      {"device", "Device", Kind::kNumber, Align::kByKind, 0, true},
      {"stream", "Stream", Kind::kNumber, Align::kByKind, 0, true},
      {"calls", "Calls", Kind::kNumber},
      {"total_ns", "Total", Kind::kDuration},
      {"share_percent", "Share", Kind::kPercent},
      {"mean_ns", "Mean", Kind::kDuration},
      {"min_ns", "Min", Kind::kDuration},
      {"max_ns", "Max", Kind::kDuration},
      {"grid", "Grid", Kind::kText, Align::kRight, 0, true},
      {"block", "Block", Kind::kText, Align::kRight, 0, true},
      {"registers", "Regs", Kind::kNumber, Align::kByKind, 0, true, "Registers per thread."},
      {"shared_memory_bytes", "Shared", Kind::kBytes, Align::kByKind, 0, true, "Shared memory per block."},
      {"occupancy_percent", "Occup.", Kind::kPercent, Align::kByKind, 0, true,
       "Share of the threads a GPU can hold at once that this kernel fills; estimated from its launch configuration."},
      {"occupancy_limit", "Bound by", Kind::kText, Align::kByKind, 0, true,
       "What limits occupancy: the grid (too few blocks for the GPU), registers, shared memory, or the GPU's own "
       "limits."},
      {"graph_calls", "In graphs", Kind::kNumber, Align::kByKind, 0, true, "Calls launched by a CUDA graph."},
      {"bytes", "Bytes", Kind::kBytes, Align::kByKind, 0, true},
      {"bandwidth_gb_s", "Bandwidth", Kind::kBandwidth, Align::kByKind, 0, true},
      {"top_op", "Mostly for", Kind::kText, Align::kByKind, kOpWidth, true, "The operator that launched most of it."},
      {"top_op_percent", "Its share", Kind::kPercent, Align::kByKind, 0, true,
       "Share of this kernel's time that was launched by that operator."},
      {"op_count", "Ops", Kind::kNumber, Align::kByKind, 0, true},
  };
}

// The op with the largest part of the row's time, device work without an op left aside.
const analyze::OpShare* top_op(const analyze::KernelRow& row) {
  const auto found =
      std::find_if(row.ops.begin(), row.ops.end(), [](const analyze::OpShare& share) { return share.op != kNoString; });
  return found == row.ops.end() ? nullptr : &*found;
}

std::vector<Cell> cells(const Model& model, const analyze::KernelRow& row) {
  const analyze::OpShare* top = top_op(row);
  const bool split_by_op = row.op != kNoString;
  const int64_t op_count = std::count_if(row.ops.begin(), row.ops.end(),
                                         [](const analyze::OpShare& share) { return share.op != kNoString; });
  const bool has_top = top != nullptr && !split_by_op;
  const double top_percent =
      has_top && row.total_ns > 0 ? 100.0 * static_cast<double>(top->total_ns) / static_cast<double>(row.total_ns) : 0;
  return {std::string(name_of(row.kind)),
          std::string(model.text(row.name)),
          op_name(model, row.op),
          cell_unless(row.device, int32_t{-1}),
          cell_unless(row.stream, kNoNumber),
          row.calls,
          row.total_ns,
          row.share_percent,
          std::llround(row.mean_ns()),
          row.min_ns,
          row.max_ns,
          launch_shape(row.grid),
          launch_shape(row.block),
          cell_unless(row.registers, int32_t{-1}),
          cell_unless(row.shared_memory_bytes, kNoNumber),
          cell_unless(row.occupancy_percent, -1.0),
          limit_cell(row.occupancy_limit),
          cell_unless(row.graph_calls, int64_t{0}),
          cell_unless(row.bytes, kNoNumber),
          cell_unless(row.bandwidth_gb_s, -1.0),
          has_top ? op_name(model, top->op) : Cell{},
          has_top ? Cell{top_percent} : Cell{},
          has_top ? Cell{op_count} : Cell{}};
}

// What the shown rows leave out, as one row.
std::vector<Cell> rest_cells(const analyze::KernelTable& table, size_t shown) {
  analyze::KernelRow rest;
  rest.min_ns = table.rows[shown].min_ns;
  for (size_t i = shown; i < table.rows.size(); ++i) {
    const analyze::KernelRow& row = table.rows[i];
    rest.calls += row.calls;
    rest.total_ns += row.total_ns;
    rest.share_percent += row.share_percent;
    rest.min_ns = std::min(rest.min_ns, row.min_ns);
    rest.max_ns = std::max(rest.max_ns, row.max_ns);
  }
  std::vector<Cell> out(kernel_columns().size());
  out[0] = "rest";
  out[1] = fmt::format("({} more rows)", table.rows.size() - shown);
  out[5] = rest.calls;
  out[6] = rest.total_ns;
  out[7] = rest.share_percent;
  out[8] = std::llround(rest.mean_ns());
  out[9] = rest.min_ns;
  out[10] = rest.max_ns;
  return out;
}

std::vector<Note> notes(const analyze::KernelTable& table) {
  if (table.calls == 0) return {kNoDeviceWork};
  std::vector<Note> out;
  if (table.busy_ns < table.work_ns) {
    out.push_back(fmt::format("{} of device work ran at the same time as other work",
                              format_duration(table.work_ns - table.busy_ns)));
  }
  if (table.without_op > 0) {
    out.push_back(
        fmt::format("device work that belongs to no op of this trace: {} of {} calls", table.without_op, table.calls));
  }
  if (table.without_occupancy > 0) {
    out.push_back(
        fmt::format("calls not included in occupancy: {} (neither it nor launch shape and device are in the trace)",
                    table.without_occupancy));
  }
  return out;
}

std::vector<std::string> order_names() {
  std::vector<std::string> names;
  for (const analyze::KernelOrderName& each : analyze::kKernelOrders) names.emplace_back(each.name);
  return names;
}

analyze::KernelOrder order_of(std::string_view name) {
  for (const analyze::KernelOrderName& each : analyze::kKernelOrders) {
    if (each.name == name) return each.order;
  }
  return analyze::KernelOrder::kTotal;
}

Result<Report> make_kernels(const StudiedTrace& trace, const Arguments& wanted) {
  const Model& model = trace.model();
  analyze::KernelTable table =
      trace.get<analyze::kernel_table>({.by_op = wanted.flag("group_by_op"), .by_stream = wanted.flag("by_stream")});
  analyze::sort_rows(model, table, order_of(wanted.text("sort_by")));
  Report report{.facts = {{"row_count", "Rows", Kind::kNumber, static_cast<int64_t>(table.rows.size())},
                          {"calls", "Calls", Kind::kNumber, table.calls},
                          {"work_ns", "Device work", Kind::kDuration, table.work_ns},
                          {"busy_ns", "Device busy", Kind::kDuration, table.busy_ns}}};
  report.notes = notes(table);
  Table out{.name = "kernels", .columns = kernel_columns(), .hide_if_empty = true};
  const size_t shown = shown_of(table.rows.size(), wanted);
  for (size_t i = 0; i < shown; ++i) out.add(cells(model, table.rows[i]));
  // For people the table still adds up.
  if (shown < table.rows.size() && wanted.for_people) out.add(rest_cells(table, shown));
  report.tables = {std::move(out)};
  return report;
}

}  // namespace

ReportSpec kernels_report() {
  return {
      .name = "kernels",
      .title = "Kernels",
      .sentence =
          "Show device time per kernel, memcpy and memset: calls, durations, launch shape, occupancy, bandwidth.",
      .examples = {"firelane kernels trace.json.gz --rows 10",
                   "firelane kernels trace.json.gz --group-by-op --sort-by calls --csv"},
      .parameters = {Parameter::flag("group_by_op", "one row per kernel and the op that launched it"),
                     Parameter::flag("by_stream", "one row per kernel and stream"),
                     Parameter::choice("sort_by", order_names(), "largest first; names ascending"), Parameter::rows()},
      .shown_rows = 30,
      .tables = {{"kernels"}},
      .make = make_kernels};
}

}  // namespace firelane::report
