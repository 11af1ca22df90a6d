// firelane modules FILE
#include <optional>

#include "analyze/modules/modules.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/modules_report.h"

namespace firelane::cli {

namespace {

struct ModulesArgs {
  std::string path;
  bool by_type = false;
  int64_t depth = -1;
  std::optional<size_t> rows;
  OutputOptions output;
};

Result<int> run_modules(const ModulesArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const size_t rows = args.rows.value_or(output.for_people() ? 50 : 0);
  const analyze::ModuleTable table = analyze::module_table(model, {.by_type = args.by_type});
  FL_TRY_VOID(output.print(report::modules_report(table, {.max_rows = rows, .max_depth = args.depth})));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb modules_verb() {
  return {.name = "modules",
          .sentence = "Time, memory and FLOPs per nn.Module and per phase, forward and backward.",
          .examples = {"firelane modules trace.json.gz --depth 1", "firelane modules trace.json.gz --by-type --csv"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ModulesArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--by-type", args->by_type, "one row per type of module");
            flags.add("--depth", args->depth, "modules at most this deep; 0 = the outermost (default: all)")
                .whole_number()
                .value_name("N");
            flags.add("--rows", args->rows, "show this many; 0 = all (default: 50 in text and Markdown)")
                .whole_number()
                .value_name("N");
            add_report_options(flags, args->output);
            return [args] { return run_modules(*args); };
          }};
}

}  // namespace firelane::cli
