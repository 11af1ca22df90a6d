// firelane report FILE -o report.md: the verdict and everything behind it in one document.
#include "report/trace_report.h"

#include <filesystem>

#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

struct ReportArgs {
  std::string path;
  OutputOptions output;
};

// By the ending of its name. - is Markdown: what one pipes into another program.
Result<void> check_form(const std::string& path) {
  if (path == "-" || path.ends_with(".md") || path.ends_with(".markdown")) return {};
  return Error{path + ": a report is Markdown; name it report.md, or - for standard output"};
}

Result<int> run_report(const ReportArgs& args) {
  FL_TRY_VOID(check_form(args.output.path));
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const Model model, open_trace(args.path));
  const std::string name = std::filesystem::path(args.path).filename().string();
  FL_TRY_VOID(output.write(report::markdown(model, report::trace_report(model, name))));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb report_verb() {
  return {.name = "report",
          .sentence = "The verdict and everything behind it, in one document to keep or to send.",
          .examples = {"firelane report trace.json.gz -o report.md", "firelane report run.lane -o - | less"},
          .setup = [](CLI::App& app) -> VerbBody {
            auto args = std::make_shared<ReportArgs>();
            add_trace_argument(app, args->path);
            add_file_options(app, args->output);
            return [args] { return run_report(*args); };
          }};
}

}  // namespace firelane::cli
