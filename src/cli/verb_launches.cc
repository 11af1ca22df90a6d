// firelane launches FILE
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
  FL_TRY_VOID(output.print(report::launches_report(model, study(model))));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb launches_verb() {
  return {.name = "launches",
          .sentence = "What launches cost, how long work waits for the device, how deep the queue is.",
          .examples = {"firelane launches trace.json.gz", "firelane launches trace.json.gz --csv"},
          .setup = [](CLI::App& app) -> VerbBody {
            auto args = std::make_shared<Args>();
            add_trace_argument(app, args->path);
            add_report_options(app, args->output);
            return [args] { return run(*args); };
          }};
}

}  // namespace firelane::cli
