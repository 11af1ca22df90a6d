// firelane compare BEFORE AFTER: is it slower, is that more than noise, and why?
#include <optional>

#include "cli/compared.h"
#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/verbs.h"
#include "cli/viewing.h"
#include "serve/one_file.h"

namespace firelane::cli {

namespace {

struct CompareArgs {
  std::vector<std::string> files;
  std::vector<std::string> before;
  std::vector<std::string> after;
  std::string by;
  double threshold_percent = 3;
  double alpha = 0.05;
  double price_per_hour = -1;
  size_t rows = 15;
  bool view = false;
  ViewOptions viewing;
  OutputOptions output;
};

std::optional<report::RunsBy> by_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return name == "model" ? report::RunsBy::kModel : name == "batch" ? report::RunsBy::kBatch : report::RunsBy::kFile;
}

Result<Compared> find_compared(const CompareArgs& args) {
  Compared out{.comparison = {.judge = {.alpha = args.alpha, .threshold = args.threshold_percent / 100},
                              .by = by_of(args.by),
                              .price_per_hour = args.price_per_hour,
                              .is_first = true}};
  if (out.comparison.by) {
    FL_TRY(out.files, find_run_files(args.files));
    return out;
  }
  const bool by_flags = !args.before.empty();
  FL_TRY_VOID(add_side(by_flags ? args.before : std::vector{args.files[0]}, out, out.comparison.before));
  FL_TRY_VOID(add_side(by_flags ? args.after : std::vector{args.files[1]}, out, out.comparison.after));
  return out;
}

Result<int> run_compare(const CompareArgs& args) {
  const bool by_flags = !args.before.empty() || !args.after.empty();
  if (by_flags && (args.before.empty() || args.after.empty())) {
    return complain("compare: --before and --after belong together; give both", kExitUsage);
  }
  if (by_flags ? !args.files.empty() || !args.by.empty() : args.by.empty() && args.files.size() != 2) {
    return complain(
        "compare: give two files or folders, or --before A... --after B..., or files and --by file for a table of all",
        kExitUsage);
  }
  const OutputOptions& wanted = args.output;
  const bool has_form = wanted.json || wanted.csv || wanted.markdown;
  if (args.view) {
    if (has_form || wanted.path != "-") {
      return complain("compare: --view opens the browser; leave -o, --json, --csv and --markdown out", kExitUsage);
    }
    FL_TRY(const Compared compared, find_compared(args));
    return serve_traces(compared.files, args.viewing, compared.comparison);
  }
  std::string_view page;
  const bool is_page = is_html_name(wanted.path);
  if (is_page) {
    if (has_form) {
      return complain(wanted.path + ": a page for the browser; give a table another name", kExitUsage);
    }
    FL_TRY(page, serve::one_file_page());  // before long work: it may be missing
  }
  FL_TRY(Output output, Output::open(wanted));
  FL_TRY(const Compared compared, find_compared(args));
  FL_TRY(const std::string text,
         is_page ? compared_page(compared, page) : compared_text(compared, args.rows, output.form(), output.style()));
  FL_TRY_VOID(output.write(text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb compare_verb() {
  return {
      .name = "compare",
      .sentence = "Compare two versions: is the second one slower, is that more than noise, and why.",
      .examples = {"firelane compare before.lane after.lane --view",
                   "firelane compare --before main1.lane main2.lane --after new1.lane new2.lane -o report.html"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<CompareArgs>();
        flags
            .add("FILE", args->files, "BEFORE and AFTER: a trace, or a folder or pattern of the traces of several runs")
            .value_name("");
        flags.add("--before", args->before, "runs of the first side").value_name("FILE...");
        flags.add("--after", args->after, "runs of the second side").value_name("FILE...");
        flags.add("--by", args->by, "a table of all files instead, one row for each file, model or batch size")
            .one_of({"file", "model", "batch"});
        flags.add("--threshold", args->threshold_percent, "a difference of less than this many percent does not matter")
            .between(0.0, 1000.0)
            .value_name("PERCENT")
            .show_default();
        flags.add("--alpha", args->alpha, "a difference with a higher p-value than this is noise")
            .between(0.0001, 0.5)
            .value_name("P")
            .show_default();
        flags.add("--price-per-hour", args->price_per_hour, "of the devices of a run; with --by").between(0.0, 1e9);
        flags.add("--rows", args->rows, "show this many rows of each table in text and Markdown; 0 = all")
            .whole_number()
            .value_name("N")
            .show_default();
        flags.add("--view", args->view, "open the comparison in the browser");
        add_view_options(flags, args->viewing);
        add_report_options(flags, args->output);
        return [args] { return run_compare(*args); };
      }};
}

}  // namespace firelane::cli
