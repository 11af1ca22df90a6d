// firelane steps FILE
#include "analyze/steps/steps.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/steps_report.h"

namespace firelane::cli {

namespace {

struct StepsArgs {
  std::string path;
  OutputOptions output;
};

Result<int> run_steps(const StepsArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  FL_TRY_VOID(output.print(report::steps_report(analyze::step_table(model))));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb steps_verb() {
  return {.name = "steps",
          .sentence = "How long each step took, and how much of it the devices worked.",
          .examples = {"firelane steps trace.json.gz", "firelane steps trace.json.gz --csv -o steps.csv"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<StepsArgs>();
            add_trace_argument(flags, args->path);
            add_report_options(flags, args->output);
            return [args] { return run_steps(*args); };
          }};
}

}  // namespace firelane::cli
