// /api/t/T/report/VERB: the reports of the command line's verbs, described. Parameters are the verb's flags.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "analyze/compute/copies.h"
#include "analyze/compute/fusion.h"
#include "analyze/compute/roofline.h"
#include "analyze/device/kernels.h"
#include "analyze/memory/memory.h"
#include "analyze/modules/modules.h"
#include "analyze/ops/ops.h"
#include "analyze/steps/input_pipeline.h"
#include "analyze/steps/steps.h"
#include "analyze/trace/info.h"
#include "analyze/trace/lanes.h"
#include "analyze/verdict/cost.h"
#include "analyze/verdict/inference.h"
#include "report/cost_report.h"
#include "report/described.h"
#include "report/fusion_report.h"
#include "report/inference_report.h"
#include "report/info_report.h"
#include "report/input_report.h"
#include "report/kernels_report.h"
#include "report/lanes_report.h"
#include "report/memory_report.h"
#include "report/modules_report.h"
#include "report/ops_table.h"
#include "report/roofline_report.h"
#include "report/steps_report.h"
#include "report/study_reports.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

using report::Report;

constexpr size_t kUsualRows = 1000;
constexpr size_t kMostReportRows = 100'000;
constexpr double kMuch = 1e12;

Report info_of(const ServedTrace& trace, Parameters&) {
  return report::info_report(trace.model(), trace.studied().get<analyze::describe_trace>());
}

Report ops_of(const ServedTrace& trace, Parameters& wanted) {
  const analyze::OpsOptions grouping{
      .group_by_input_shape = wanted.truth("group_by_input_shape") || wanted.truth("group_by_shape"),
      .group_by_stack = static_cast<uint32_t>(wanted.integer("group_by_stack", 0, 0, 100))};
  const std::vector<std::string> names = report::ops_order_names();
  std::vector<std::string_view> orders(names.begin(), names.end());
  orders.insert(orders.begin(), "");  // without sort_by: in order of first call
  const size_t order = wanted.choice("sort_by", orders);
  report::OpsTableOptions options{.row_limit = -1, .top_level_only = wanted.truth("top_level"), .with_flops = true};
  if (order != 0) options.order = report::parse_ops_order(names[order - 1]).value();
  options.side = static_cast<report::OpsSide>(wanted.choice("side", {"both", "host", "device"}));
  if (!wanted.ok()) return {};
  return report::ops_report(trace.studied().get<analyze::ops>(grouping), options);
}

Report kernels_of(const ServedTrace& trace, Parameters& wanted) {
  const analyze::KernelOptions grouping{.by_op = wanted.truth("group_by_op"), .by_stream = wanted.truth("by_stream")};
  std::vector<std::string_view> orders;
  for (const analyze::KernelOrderName& each : analyze::kKernelOrders) orders.push_back(each.name);
  const size_t order = wanted.choice("sort_by", orders);
  if (!wanted.ok()) return {};
  analyze::KernelTable table = trace.studied().get<analyze::kernel_table>(grouping);
  analyze::sort_rows(trace.model(), table, analyze::kKernelOrders[order].order);
  return report::kernels_report(trace.model(), table);
}

Report roofline_of(const ServedTrace& trace, Parameters&) {
  return report::roofline_report(trace.model(), trace.studied().get<analyze::roofline>());
}

Report steps_of(const ServedTrace& trace, Parameters&) {
  return report::steps_report(trace.studied().get<analyze::step_table>());
}

Report lanes_of(const ServedTrace& trace, Parameters& wanted) {
  const auto empty = wanted.truth("all") ? report::EmptyLanes::kShow : report::EmptyLanes::kHide;
  return report::lanes_report(trace.model(), trace.studied().get<analyze::lane_table>(), empty);
}

Report breakdown_of(const ServedTrace& trace, Parameters&) {
  return report::breakdown_report(trace.model(), trace.study());
}
Report idle_of(const ServedTrace& trace, Parameters&) { return report::idle_report(trace.model(), trace.study(), 0); }
Report launches_of(const ServedTrace& trace, Parameters&) {
  return report::launches_report(trace.model(), trace.study());
}
Report syncs_of(const ServedTrace& trace, Parameters&) { return report::syncs_report(trace.model(), trace.study()); }
Report critical_path_of(const ServedTrace& trace, Parameters&) {
  return report::critical_path_report(trace.model(), trace.study(), 0);
}

Report fusion_of(const ServedTrace& trace, Parameters&) {
  return report::fusion_report(trace.model(), trace.studied().get<analyze::fusion_table>());
}

Report modules_of(const ServedTrace& trace, Parameters& wanted) {
  const analyze::ModuleOptions grouping{.by_type = wanted.truth("by_type")};
  const int64_t depth = wanted.integer("depth", -1, 0, 1'000'000);
  if (!wanted.ok()) return {};
  return report::modules_report(trace.studied().get<analyze::module_table>(grouping), {.max_depth = depth});
}

Report memory_of(const ServedTrace& trace, Parameters& wanted) {
  const bool curve = wanted.truth("curve");
  if (!wanted.ok()) return {};
  return report::memory_report(trace.model(), trace.studied().get<analyze::memory_report>(),
                               trace.studied().get<analyze::copy_table>(), {.curve = curve});
}

Report input_of(const ServedTrace& trace, Parameters&) {
  return report::input_report(trace.model(), trace.studied().get<analyze::input_pipeline>());
}

Report inference_of(const ServedTrace& trace, Parameters&) {
  return report::inference_report(trace.studied().get<analyze::find_inference>());
}

Report cost_of_trace(const ServedTrace& trace, Parameters& wanted) {
  const analyze::CostOptions options{.price_per_hour = wanted.number("price_per_hour", -1, 0, kMuch),
                                     .grams_per_kwh = wanted.number("grams_per_kwh", -1, 0, kMuch),
                                     .samples_per_step = wanted.integer("samples_per_step", -1, 1, INT64_MAX),
                                     .steps_per_run = wanted.integer("steps_per_run", -1, 1, INT64_MAX),
                                     .overhead_factor = wanted.number("overhead_factor", 1, 1, 10)};
  if (!wanted.ok()) return {};
  return report::cost_report(analyze::cost_of(trace.model(), options), options);
}

// The part of info that says what is missing.
Report losses_of(const ServedTrace& trace, Parameters& wanted) {
  Report all = info_of(trace, wanted);
  std::erase_if(all.tables, [](const report::Table& table) {
    return table.name != "losses" && table.name != "recorder_losses" && table.name != "answers";
  });
  all.facts.clear();
  return all;
}

struct NamedReport {
  std::string_view verb;
  std::string_view title;
  Report (*make)(const ServedTrace& trace, Parameters& wanted);
};

constexpr std::array kReports = {
    NamedReport{"info", "The trace", info_of},
    NamedReport{"ops", "Operators", ops_of},
    NamedReport{"kernels", "Kernels", kernels_of},
    NamedReport{"roofline", "Roofline", roofline_of},
    NamedReport{"steps", "Steps", steps_of},
    NamedReport{"lanes", "Lanes", lanes_of},
    NamedReport{"breakdown", "Where a step goes", breakdown_of},
    NamedReport{"idle", "Idle device", idle_of},
    NamedReport{"launches", "Launches", launches_of},
    NamedReport{"syncs", "Synchronisation", syncs_of},
    NamedReport{"critical-path", "Critical path", critical_path_of},
    NamedReport{"fusion", "Fusion", fusion_of},
    NamedReport{"modules", "Modules", modules_of},
    NamedReport{"memory", "Memory", memory_of},
    NamedReport{"input", "Input", input_of},
    NamedReport{"inference", "Inference", inference_of},
    NamedReport{"cost", "Cost", cost_of_trace},
    NamedReport{"losses", "What the trace lacks", losses_of},
};

}  // namespace

size_t wanted_rows(Parameters& wanted) {
  return static_cast<size_t>(wanted.integer("rows", kUsualRows, 0, kMostReportRows));
}

Answer report(const ServedTrace& trace, const Request& request) {
  for (const NamedReport& each : kReports) {
    if (each.verb != request.path[4]) continue;
    Parameters wanted(request);
    const size_t rows = wanted_rows(wanted);
    if (!wanted.ok()) return bad_request(wanted);
    Report made = each.make(trace, wanted);
    if (!wanted.ok()) return bad_request(wanted);
    if (made.title.empty()) made.title = each.title;
    return {.body = report::described(made, rows)};
  }
  return refusal(404, "no such report; docs/viewer-protocol.md lists them");
}

}  // namespace firelane::serve
