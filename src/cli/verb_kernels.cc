// firelane kernels FILE
#include <map>
#include <optional>

#include "analyze/compute/roofline.h"
#include "analyze/device/kernels.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/kernels_report.h"
#include "report/roofline_report.h"

namespace firelane::cli {

namespace {

std::map<std::string, analyze::KernelOrder> orders() {
  std::map<std::string, analyze::KernelOrder> names;
  for (const analyze::KernelOrderName& each : analyze::kKernelOrders) names.emplace(each.name, each.order);
  return names;
}

constexpr size_t kKernelsForPeople = 30;

struct KernelsArgs {
  std::string path;
  bool by_op = false;
  bool by_stream = false;
  bool roofline = false;
  std::string sort_by = "total";
  std::optional<size_t> rows;
  OutputOptions output;
};

Result<int> run_kernels(const KernelsArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  if (args.roofline) {
    const size_t rows = args.rows.value_or(output.for_people() ? kKernelsForPeople : 0);
    FL_TRY_VOID(output.print(report::roofline_report(model, analyze::roofline(model), {.max_rows = rows})));
    FL_TRY_VOID(output.close());
    return kExitOk;
  }
  analyze::KernelTable table = analyze::kernel_table(model, {.by_op = args.by_op, .by_stream = args.by_stream});
  analyze::sort_rows(model, table, orders().at(args.sort_by));
  const size_t rows = args.rows.value_or(output.for_people() ? kKernelsForPeople : 0);
  FL_TRY_VOID(output.print(report::kernels_report(model, table, {.max_rows = rows, .sum_rest = output.for_people()})));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb kernels_verb() {
  return {.name = "kernels",
          .sentence = "Device time per kernel, copy and set: calls, durations, launch shape, occupancy, bandwidth.",
          .examples = {"firelane kernels trace.json.gz --rows 10",
                       "firelane kernels trace.json.gz --group-by-op --sort-by calls --csv"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<KernelsArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--group-by-op", args->by_op, "one row per kernel and the op that launched it");
            flags.add("--by-stream", args->by_stream, "one row per kernel and stream");
            flags
                .add("--roofline", args->roofline,
                     "per op and shape: FLOP/s, bandwidth, tensor cores, and how near to what the device can do")
                .excludes("--group-by-op")
                .excludes("--by-stream");
            std::vector<std::string> names;
            for (const auto& [name, order] : orders()) names.push_back(name);
            flags.add("--sort-by", args->sort_by, "largest first; names ascending").one_of(names).show_default();
            flags
                .add("--rows", args->rows,
                     "show this many; text and Markdown sum up the rest. 0 = all (default: 30 in text and Markdown)")
                .whole_number()
                .value_name("N");
            add_report_options(flags, args->output);
            return [args] { return run_kernels(*args); };
          }};
}

}  // namespace firelane::cli
