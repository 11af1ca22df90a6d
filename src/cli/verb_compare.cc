// firelane compare BEFORE AFTER: is it slower, is that more than noise, and why?
#include <optional>

#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/verbs.h"
#include "cli/viewing.h"
#include "report/comparison.h"
#include "serve/comparison.h"

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

// The traces that are compared, and how. Without sides all of them are in a table.
struct Compared {
  std::vector<std::string> files;
  serve::Comparison comparison;
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
  const auto add = [&](const std::vector<std::string>& names, std::vector<size_t>& side) -> Result<void> {
    FL_TRY(const std::vector<std::string> found, find_run_files(names));
    for (const std::string& file : found) {
      side.push_back(out.files.size());
      out.files.push_back(file);
    }
    return {};
  };
  const bool by_flags = !args.before.empty();
  FL_TRY_VOID(add(by_flags ? args.before : std::vector{args.files[0]}, out.comparison.before));
  FL_TRY_VOID(add(by_flags ? args.after : std::vector{args.files[1]}, out.comparison.after));
  return out;
}

Result<std::string> compared_text(const CompareArgs& args, const Compared& compared, const Output& output) {
  FL_TRY(const std::vector<compare::Run> runs, read_runs(compared.files));
  const serve::Comparison& how = compared.comparison;
  if (how.by) {
    const report::RunsOptions options{.by = *how.by, .price_per_hour = how.price_per_hour};
    return report::render(report::runs_report(runs, options), output.form(), output.style());
  }
  const auto second = runs.begin() + static_cast<std::ptrdiff_t>(how.before.size());
  const compare::Difference difference =
      compare::compare_sides({runs.begin(), second}, {second, runs.end()}, how.judge);
  const bool for_people = output.form() == report::Form::kText || output.form() == report::Form::kMarkdown;
  return report::comparison_text(difference, for_people ? args.rows : 0, output.form(), output.style());
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
  if (args.view) {
    FL_TRY(const Compared compared, find_compared(args));
    return serve_traces(compared.files, args.viewing, compared.comparison);
  }
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const Compared compared, find_compared(args));
  FL_TRY(const std::string text, compared_text(args, compared, output));
  FL_TRY_VOID(output.write(text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb compare_verb() {
  return {
      .name = "compare",
      .sentence = "Whether a second version is slower, whether that is more than noise, and why.",
      .examples = {"firelane compare before.lane after.lane",
                   "firelane compare --before main1.lane main2.lane --after new1.lane new2.lane --markdown"},
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
        flags.add("--alpha", args->alpha, "a difference that chance gives more often than this is noise")
            .between(0.0001, 0.5)
            .value_name("P")
            .show_default();
        flags.add("--price-per-hour", args->price_per_hour, "of the devices of a run, for --by").between(0.0, 1e9);
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
