// firelane report FILE|DIR -o report.html or report.md: the verdict and everything behind it in one document.
#include "report/trace_report.h"

#include <filesystem>

#include "cli/open.h"
#include "cli/output.h"
#include "cli/rank_files.h"
#include "cli/verbs.h"
#include "report/ranks_report.h"
#include "serve/one_file.h"

namespace firelane::cli {

namespace {

struct ReportArgs {
  std::string path;
  OutputOptions output;
};

enum class ReportForm : uint8_t { kMarkdown, kHtml };

// By the ending of its name. - is Markdown: what one pipes into another program.
Result<ReportForm> form_of(const std::string& path) {
  if (path == "-" || path.ends_with(".md") || path.ends_with(".markdown")) return ReportForm::kMarkdown;
  if (path.ends_with(".html") || path.ends_with(".htm")) return ReportForm::kHtml;
  return Error{path + ": a report is HTML or Markdown; name it report.html or report.md, or - for standard output"};
}

// The Ranks pane alone: the traces stay where they are.
Result<int> report_job(const std::string& folder, ReportForm form, std::string_view page, Output& output) {
  FL_TRY(const auto job, open_job({folder}, {.use_parts = true}));
  if (form == ReportForm::kHtml) {
    const auto load = [](const std::string& path, const LoadProgress&) -> Result<Model> { return Error{path}; };
    serve::Api api(std::make_shared<TraceSet>(std::vector<std::string>(), load), FIRELANE_VERSION);
    api.serve_job({.job = job});
    FL_TRY(const std::string html, serve::one_file(api, page));
    FL_TRY_VOID(output.write(html));
  } else {
    FL_TRY_VOID(output.write(report::ranks_text(job->result, {}, report::Form::kMarkdown, {})));
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

Result<int> run_report(const ReportArgs& args) {
  FL_TRY(const ReportForm form, form_of(args.output.path));
  std::string_view page;
  if (form == ReportForm::kHtml) {
    FL_TRY(page, serve::one_file_page());  // before long work: it may be missing
  }
  FL_TRY(Output output, Output::open(args.output));
  if (is_job_folder(args.path)) return report_job(args.path, form, page, output);
  FL_TRY(const auto traces, open_traces({args.path}));
  if (form == ReportForm::kHtml) {
    serve::Api api(traces, FIRELANE_VERSION);
    FL_TRY(const std::string html, serve::one_file(api, page));
    FL_TRY_VOID(output.write(html));
  } else {
    const StudiedTrace& trace = *traces->trace(0);
    const std::string name = std::filesystem::path(args.path).filename().string();
    FL_TRY_VOID(output.write(report::markdown(trace, report::trace_report(trace, name))));
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb report_verb() {
  return {.name = "report",
          .sentence = "The verdict and everything behind it, in one document to keep or to send.",
          .examples = {"firelane report trace.json.gz -o report.html", "firelane report traces/ -o job.html"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ReportArgs>();
            add_trace_argument(flags, args->path);
            add_file_options(flags, args->output);
            return [args] { return run_report(*args); };
          }};
}

}  // namespace firelane::cli
