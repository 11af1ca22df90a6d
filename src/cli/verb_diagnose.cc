// firelane diagnose FILE
#include "advise/diagnose.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/diagnose_report.h"

namespace firelane::cli {

namespace {

struct DiagnoseArgs {
  std::string path;
  OutputOptions output;
  bool brief = false;
};

Result<int> run_diagnose(const DiagnoseArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const bool brief = args.brief && output.form() == report::Form::kText;
  FL_TRY_VOID(output.write(brief ? report::short_diagnosis(*trace, {.style = output.style()})
                                 : report::diagnosis(*trace, output.form(), output.style())));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb diagnose_verb() {
  return {.name = "diagnose",
          .sentence = "What limits the program, what to change, and how much that would gain.",
          .examples = {"firelane diagnose trace.json.gz", "firelane diagnose trace.json.gz --json -o diagnosis.json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<DiagnoseArgs>();
            add_trace_argument(flags, args->path);
            add_report_options(flags, args->output);
            flags.add("--short", args->brief, "text: the verdict, and two lines for each of the first findings");
            return [args] { return run_diagnose(*args); };
          }};
}

}  // namespace firelane::cli
