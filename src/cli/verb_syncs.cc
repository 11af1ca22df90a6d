// firelane syncs FILE
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
  FL_TRY_VOID(output.print(report::syncs_report(model, study(model))));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb syncs_verb() {
  return {.name = "syncs",
          .sentence = "Every call that waited for the device: how long, and who asked.",
          .examples = {"firelane syncs trace.json.gz", "firelane syncs trace.json.gz --csv -o syncs.csv"},
          .setup = [](CLI::App& app) -> VerbBody {
            auto args = std::make_shared<Args>();
            add_trace_argument(app, args->path);
            add_report_options(app, args->output);
            return [args] { return run(*args); };
          }};
}

}  // namespace firelane::cli
