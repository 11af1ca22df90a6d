#include "bind/trace/answers.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "analyze/device/kernels.h"
#include "analyze/ops/ops.h"
#include "analyze/steps/steps.h"
#include "analyze/trace/info.h"
#include "analyze/trace/lanes.h"
#include "bind/trace/report_table.h"
#include "bind/trace/table.h"
#include "report/info_report.h"
#include "report/kernels_report.h"
#include "report/lanes_report.h"
#include "report/ops_table.h"
#include "report/steps_report.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

constexpr int64_t kPrintedOps = 100;  // as many as the command line prints
constexpr size_t kPrintedKernels = 30;

nb::object info(const Trace& trace) {
  std::string json;
  {
    const nb::gil_scoped_release release_gil;
    json = report::render(report::info_report(*trace.model, trace.studied->get<analyze::describe_trace>()),
                          report::Form::kJson);
  }
  return parse_json(json);
}

report::OpsSide parse_side(const std::string& side) {
  if (side == "both") return report::OpsSide::kBoth;
  if (side == "host") return report::OpsSide::kHost;
  if (side == "device") return report::OpsSide::kDevice;
  throw nb::value_error("ops: side is one of both, host, device");
}

Table ops_answer(const Trace& trace, const std::optional<std::string>& sort_by, bool group_by_shape,
                 uint32_t group_by_stack, bool top_level, const std::string& side, std::optional<int64_t> rows,
                 bool flops) {
  report::OpsTableOptions options{.top_level_only = top_level, .side = parse_side(side)};
  if (sort_by) {
    const Result<report::OpsOrder> order = report::parse_ops_order(*sort_by);
    if (!order.ok()) throw nb::value_error(order.error().message.c_str());
    options.order = order.value();
  }
  const nb::gil_scoped_release release_gil;
  const auto& result =
      trace.studied->get<analyze::ops>({.group_by_input_shape = group_by_shape, .group_by_stack = group_by_stack});
  options.with_flops = flops || result.has_flops;
  options.row_limit = rows.value_or(kPrintedOps);
  std::string text = report::ops_table(result, options);
  options.row_limit = rows.value_or(-1);
  return answer(std::move(report::ops_report(result, options).tables.front()), "ops", std::move(text));
}

analyze::KernelOrder parse_kernel_order(const std::string& name) {
  std::string choices;
  for (const analyze::KernelOrderName& each : analyze::kKernelOrders) {
    if (each.name == name) return each.order;
    choices += (choices.empty() ? "" : ", ") + std::string(each.name);
  }
  throw nb::value_error(("kernels: sort_by is one of " + choices).c_str());
}

Table kernels_answer(const Trace& trace, const std::string& sort_by, bool group_by_op, bool by_stream,
                     std::optional<size_t> rows) {
  const analyze::KernelOrder order = parse_kernel_order(sort_by);
  const nb::gil_scoped_release release_gil;
  const Model& model = *trace.model;
  analyze::KernelTable table =
      trace.studied->get<analyze::kernel_table>({.by_op = group_by_op, .by_stream = by_stream});
  analyze::sort_rows(model, table, order);
  std::string text = report::render(
      report::kernels_report(model, table, {.max_rows = rows.value_or(kPrintedKernels), .sum_rest = true}),
      report::Form::kText);
  report::Report all = report::kernels_report(model, table, {.max_rows = rows.value_or(0)});
  return answer(std::move(all.tables.front()), "kernels", std::move(text));
}

Table steps_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  return answer(report::steps_report(trace.studied->get<analyze::step_table>()), "steps_summary");
}

Table lanes_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  const Model& model = *trace.model;
  return answer(report::lanes_report(model, trace.studied->get<analyze::lane_table>(), report::EmptyLanes::kShow),
                "lanes_summary");
}

}  // namespace

Table answer(report::Table all, std::string name, std::string text) {
  return answer(report::Report{.tables = {std::move(all)}}, std::move(name), std::move(text));
}

Table answer(report::Report all, std::string name, std::string text) {
  all.tables.resize(1);
  all.tables[0].name = std::move(name);
  auto arrow = arrow_table(all.tables[0]);
  return {std::move(arrow), std::make_shared<const ForPeople>(ForPeople{std::move(all), std::move(text)})};
}

Table answer(report::Report report, std::string name) {
  std::string text = report::render(report, report::Form::kText);
  return answer(std::move(report), std::move(name), std::move(text));
}

void bind_answers(nb::class_<Trace>& trace) {
  trace.def_prop_ro("info", &info, nb::sig("def info(self) -> dict[str, typing.Any]"),
                    "What the trace is, what it can answer and what it lost: the words of `firelane info --json`.");
  trace.def("ops", &ops_answer, nb::kw_only(), nb::arg("sort_by") = nb::none(), nb::arg("group_by_shape") = false,
            nb::arg("group_by_stack") = 0, nb::arg("top_level") = false, nb::arg("side") = "both",
            nb::arg("rows") = nb::none(), nb::arg("flops") = false,
            nb::sig("def ops(self, *, sort_by: str | None = None, group_by_shape: bool = False, "
                    "group_by_stack: int = 0, top_level: bool = False, "
                    "side: typing.Literal['both', 'host', 'device'] = 'both', rows: int | None = None, "
                    "flops: bool = False) -> Table"),
            "Time, memory and FLOPs per operator. print() gives the table of torch's key_averages().\n"
            "sort_by takes torch's names (self_cuda_time_total, count, ...); rows=None is all, 100 when printed.");
  trace.def("kernels", &kernels_answer, nb::kw_only(), nb::arg("sort_by") = "total", nb::arg("group_by_op") = false,
            nb::arg("by_stream") = false, nb::arg("rows") = nb::none(),
            nb::sig("def kernels(self, *, sort_by: typing.Literal['total', 'mean', 'min', 'max', 'calls', 'occupancy', "
                    "'bytes', 'name'] = 'total', group_by_op: bool = False, by_stream: bool = False, "
                    "rows: int | None = None) -> Table"),
            "Device time per kernel, copy and set. rows=None is all, 30 when printed.");
  trace.def("steps_summary", &steps_answer, "How long each step took, and how much of it the devices worked.");
  trace.def("lanes_summary", &lanes_answer, "Threads and GPU streams: what each holds and how long it was busy.");
}

}  // namespace firelane::bind_trace
