// firelane lanes FILE
#include "analyze/trace/lanes.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/lanes_report.h"

namespace firelane::cli {

namespace {

struct LanesArgs {
  std::string path;
  bool all = false;
  OutputOptions output;
};

Result<int> run_lanes(const LanesArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const auto empty = args.all ? report::EmptyLanes::kShow : report::EmptyLanes::kHide;
  FL_TRY_VOID(output.print(report::lanes_report(model, analyze::lane_table(model), empty)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb lanes_verb() {
  return {.name = "lanes",
          .sentence = "Threads and GPU streams: what each holds and how long it was busy.",
          .examples = {"firelane lanes trace.json.gz", "firelane lanes trace.json.gz --all --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<LanesArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--all", args->all, "show lanes without slices too");
            add_report_options(flags, args->output);
            return [args] { return run_lanes(*args); };
          }};
}

}  // namespace firelane::cli
