// firelane fusion FILE
#include <optional>

#include "analyze/compute/fusion.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/fusion_report.h"

namespace firelane::cli {

namespace {

struct FusionArgs {
  std::string path;
  std::optional<size_t> rows;
  OutputOptions output;
};

Result<int> run_fusion(const FusionArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const size_t rows = args.rows.value_or(output.for_people() ? 20 : 0);
  FL_TRY_VOID(output.print(report::fusion_report(model, analyze::fusion_table(model), {.max_rows = rows})));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb fusion_verb() {
  return {.name = "fusion",
          .sentence = "Chains of small kernels that one kernel could do: launches, traffic and time it would save.",
          .examples = {"firelane fusion trace.json.gz", "firelane fusion trace.json.gz --rows 0 --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<FusionArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--rows", args->rows, "show this many; 0 = all (default: 20 in text and Markdown)")
                .whole_number()
                .value_name("N");
            add_report_options(flags, args->output);
            return [args] { return run_fusion(*args); };
          }};
}

}  // namespace firelane::cli
