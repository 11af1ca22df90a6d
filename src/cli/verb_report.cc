// firelane report FILE|DIR -o report.html or report.md: the verdict and everything behind it in one document. Of two
// traces: what changed and why.
#include "report/trace_report.h"

#include <filesystem>

#include "cli/compared.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/rank_files.h"
#include "cli/verbs.h"
#include "report/comparison.h"
#include "report/ranks_report.h"
#include "serve/one_file.h"

namespace firelane::cli {

namespace {

struct ReportArgs {
  std::vector<std::string> paths;
  JoinedPaths joined;
  OutputOptions output;
};

enum class ReportForm : uint8_t { kMarkdown, kHtml };

// By the ending of its name. - is Markdown: what one pipes into another program.
Result<ReportForm> form_of(const std::string& path) {
  if (path == "-" || path.ends_with(".md") || path.ends_with(".markdown")) return ReportForm::kMarkdown;
  if (is_html_name(path)) return ReportForm::kHtml;
  return Error{path + ": a report is HTML or Markdown; name it report.html or report.md, or - for standard output"};
}

// The Ranks pane alone: the traces stay where they are.
Result<std::string> job_document(const std::string& folder, ReportForm form, std::string_view page) {
  FL_TRY(const auto job, open_job({folder}, {.use_parts = true}));
  if (form == ReportForm::kMarkdown) return report::ranks_text(job->result, {}, report::Form::kMarkdown, {});
  const auto load = [](const std::string& path, const LoadProgress&) -> Result<Model> { return Error{path}; };
  serve::Api api(std::make_shared<TraceSet>(std::vector<std::string>(), load), FIRELANE_VERSION);
  api.serve_job({.job = job});
  return serve::one_file(api, page);
}

Result<std::string> trace_document(const ReportArgs& args, ReportForm form, std::string_view page) {
  const std::string& path = args.paths[0];
  FL_TRY(const auto traces, open_traces({path}, args.joined));
  if (form == ReportForm::kHtml) {
    serve::Api api(traces, FIRELANE_VERSION);
    return serve::one_file(api, page);
  }
  const StudiedTrace& trace = *traces->trace(0);
  const std::string name = std::filesystem::path(path).filename().string();
  return report::markdown(trace, report::trace_report(trace, name));
}

Result<std::string> comparison_document(const ReportArgs& args, ReportForm form, std::string_view page) {
  constexpr size_t kShownRows = 30;
  Compared compared{.comparison = {.is_first = true}};
  FL_TRY_VOID(add_side({args.paths[0]}, compared, compared.comparison.before));
  FL_TRY_VOID(add_side({args.paths[1]}, compared, compared.comparison.after));
  if (form == ReportForm::kHtml) return compared_page(compared, page);
  FL_TRY(const std::string text, compared_text(compared, kShownRows, report::Form::kMarkdown));
  return report::comparison_title(args.paths[0], args.paths[1]) + text;
}

Result<int> run_report(const ReportArgs& args) {
  if (args.paths.size() > 2) {
    return complain("report: give one trace, or two files or folders to compare", kExitUsage);
  }
  if (!args.joined.empty() && (args.paths.size() > 1 || is_job_folder(args.paths[0]))) return join_needs_one_trace();
  FL_TRY(const ReportForm form, form_of(args.output.path));
  std::string_view page;
  if (form == ReportForm::kHtml) {
    FL_TRY(page, serve::one_file_page());  // before long work: it may be missing
  }
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const std::string document, args.paths.size() > 1          ? comparison_document(args, form, page)
                                     : is_job_folder(args.paths[0]) ? job_document(args.paths[0], form, page)
                                                                    : trace_document(args, form, page));
  FL_TRY_VOID(output.write(document));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb report_verb() {
  return {.name = "report",
          .sentence =
              "Write the verdict and everything behind it into one document, for a trace, a comparison or a job of "
              "many ranks.",
          .examples = {"firelane report trace.json.gz -o report.html",
                       "firelane report before.lane after.lane -o - | less"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ReportArgs>();
            flags
                .add("FILE", args->paths,
                     "the trace, or the folder of a job: .lane, .json (.gz, .zst), other tools' (docs/formats), or - "
                     "for standard input; two "
                     "are compared, each a trace, a folder or a pattern")
                .required()
                .value_name("");
            add_joined_options(flags, args->joined);
            add_file_options(flags, args->output);
            return [args] { return run_report(*args); };
          }};
}

}  // namespace firelane::cli
