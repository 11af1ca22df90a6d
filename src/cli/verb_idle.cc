// firelane idle FILE
#include "analyze/study.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/study_reports.h"

namespace firelane::cli {

namespace {

struct Args {
  std::string path;
  OutputOptions output;
};

Result<int> run(const Args& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const Model model, open_trace(args.path));
  FL_TRY_VOID(output.print(report::idle_report(model, study(model), output.for_people() ? 15 : 0)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb idle_verb() {
  return {.name = "idle",
          .sentence = "Why the device did nothing: the cause of every gap.",
          .examples = {"firelane idle trace.json.gz", "firelane idle trace.json.gz --json"},
          .setup = [](CLI::App& app) -> VerbBody {
            auto args = std::make_shared<Args>();
            add_trace_argument(app, args->path);
            add_report_options(app, args->output);
            return [args] { return run(*args); };
          }};
}

}  // namespace firelane::cli
