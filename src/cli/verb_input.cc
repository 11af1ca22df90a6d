// firelane input FILE
#include "analyze/steps/input_pipeline.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/input_report.h"

namespace firelane::cli {

namespace {

struct InputArgs {
  std::string path;
  OutputOptions output;
};

Result<int> run_input(const InputArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  FL_TRY_VOID(output.print(report::input_report(model, analyze::input_pipeline(model))));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb input_verb() {
  return {.name = "input",
          .sentence = "How data comes in: waiting for the DataLoader, copies to the device, what overlaps.",
          .examples = {"firelane input trace.json.gz", "firelane input trace.json.gz --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<InputArgs>();
            add_trace_argument(flags, args->path);
            add_report_options(flags, args->output);
            return [args] { return run_input(*args); };
          }};
}

}  // namespace firelane::cli
