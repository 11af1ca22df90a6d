// firelane breakdown FILE
#include "analyze/verdict/study.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/diagnose_report.h"
#include "report/study_reports.h"

namespace firelane::cli {

namespace {

struct Args {
  std::string path;
  OutputOptions output;
};

Result<int> run(const Args& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const auto& result = trace->get<analyze::study>();
  if (output.form() == report::Form::kText) {
    FL_TRY_VOID(output.write(report::step_bars(result, output.style()) + "\n"));
  }
  FL_TRY_VOID(output.print(report::breakdown_report(model, result)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb breakdown_verb() {
  return {.name = "breakdown",
          .sentence = "How each step was spent on device and host; the parts add up to the step.",
          .examples = {"firelane breakdown trace.json.gz", "firelane breakdown trace.json.gz --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<Args>();
            add_trace_argument(flags, args->path);
            add_report_options(flags, args->output);
            return [args] { return run(*args); };
          }};
}

}  // namespace firelane::cli
