// firelane info FILE, and firelane FILE.
#include "analyze/trace/info.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/info_report.h"

namespace firelane::cli {

namespace {

struct InfoArgs {
  std::string path;
  OutputOptions output;
};

Result<int> run_info(const InfoArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  FL_TRY_VOID(output.print(report::info_report(model, analyze::describe_trace(model))));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb info_verb() {
  return {.name = "info",
          .sentence = "What a trace is, what it can answer, and what it lost.",
          .examples = {"firelane info trace.json.gz", "firelane info trace.json.gz --json | jq .answers"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<InfoArgs>();
            add_trace_argument(flags, args->path);
            add_report_options(flags, args->output);
            return [args] { return run_info(*args); };
          }};
}

}  // namespace firelane::cli
