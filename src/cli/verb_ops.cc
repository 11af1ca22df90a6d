// firelane ops FILE: time, memory and FLOPs per operator, as torch's key_averages().table().
#include "analyze/ops/ops.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "base/visible_text.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/ops_table.h"

namespace firelane::cli {

namespace {

struct OpsArgs {
  std::string path;
  OutputOptions output;
  analyze::OpsOptions grouping;
  report::OpsTableOptions table;
  std::string sort_by;
  std::optional<size_t> rows;
  std::string time_unit;
  bool host = false;
  bool device = false;
  bool flops = false;
};

constexpr size_t kOpsForPeople = 100;  // as in torch

std::string check_sort_key(const std::string& name) {
  const Result<report::OpsOrder> order = report::parse_ops_order(name);
  return order.ok() ? "" : order.error().message;
}

report::OpsTableOptions table_options(const OpsArgs& args, const analyze::OpsResult& result, bool for_people) {
  report::OpsTableOptions options = args.table;
  const size_t rows = args.rows.value_or(for_people ? kOpsForPeople : 0);
  options.row_limit = rows == 0 ? -1 : static_cast<int64_t>(rows);
  options.with_flops = args.flops || result.has_flops;
  if (args.host != args.device) options.side = args.host ? report::OpsSide::kHost : report::OpsSide::kDevice;
  if (!args.sort_by.empty()) options.order = report::parse_ops_order(args.sort_by).value();  // checked while parsing
  if (args.time_unit == "s") options.time_unit = report::TimeUnit::kSeconds;
  if (args.time_unit == "ms") options.time_unit = report::TimeUnit::kMilliseconds;
  if (args.time_unit == "us") options.time_unit = report::TimeUnit::kMicroseconds;
  if (args.output.wide) options.max_name_width = options.max_shapes_width = options.max_source_width = std::nullopt;
  return options;
}

Result<int> run_ops(const OpsArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const analyze::OpsResult result = analyze::ops(model, args.grouping);
  const report::OpsTableOptions options = table_options(args, result, output.for_people());
  if (args.output.json || args.output.csv || args.output.markdown) {
    report::Report report = report::ops_report(result, options);
    if (args.output.csv) report.facts.clear();  // the rows alone
    FL_TRY_VOID(output.print(report));
  } else {
    if (result.rows.empty()) fmt::print(stderr, "firelane: {}: no ops in this trace\n", visible_text(args.path));
    FL_TRY_VOID(output.write(report::ops_table(result, options)));
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb ops_verb() {
  return {.name = "ops",
          .sentence = "Time, memory and FLOPs per operator, as torch's key_averages().table().",
          .examples = {"firelane ops trace.json.gz --sort-by self_cuda_time_total --rows 20",
                       "firelane ops trace.json.gz --group-by-shape --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<OpsArgs>();
            add_trace_argument(flags, args->path);
            flags
                .add("--sort-by", args->sort_by,
                     "largest first, by torch's names: self_cpu_time_total, cuda_time_total, count, flops, ...")
                .check(check_sort_key);
            flags.add("--group-by-shape", args->grouping.group_by_input_shape, "one row per name and input shapes");
            flags
                .add("--group-by-stack", args->grouping.group_by_stack,
                     "one row per name and this many innermost Python frames")
                .whole_number()
                .value_name("N");
            flags.add("--top-level", args->table.top_level_only, "only rows that are not called by others");
            flags.add("--rows", args->rows, "show this many; 0 = all (default: 100 in text and Markdown)")
                .whole_number()
                .value_name("N");
            flags.add("--host", args->host, "only what runs on the CPU");
            flags.add("--device", args->device, "only what runs on the device");
            flags.add("--flops", args->flops, "show FLOPs also when the recording did not ask for them");
            flags.add("--time-unit", args->time_unit, "one unit for all times").one_of({"s", "ms", "us"});
            add_report_options(flags, args->output);
            return [args] { return run_ops(*args); };
          }};
}

}  // namespace firelane::cli
