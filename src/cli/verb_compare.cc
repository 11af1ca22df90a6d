// firelane compare BEFORE AFTER: is it slower, is that more than noise, and why?
#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/verbs.h"
#include "report/comparison.h"

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
  OutputOptions output;
};

Result<int> run_table(const CompareArgs& args, Output& output) {
  FL_TRY(const std::vector<compare::Run> runs, open_runs(args.files));
  const report::RunsOptions options{.by = args.by == "model"   ? report::RunsBy::kModel
                                          : args.by == "batch" ? report::RunsBy::kBatch
                                                               : report::RunsBy::kFile,
                                    .price_per_hour = args.price_per_hour,
                                    .one_table = output.form() == report::Form::kCsv};
  FL_TRY_VOID(output.write(report::render(report::runs_report(runs, options), output.form(), output.style())));
  FL_TRY_VOID(output.close());
  return kExitOk;
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
  FL_TRY(Output output, Output::open(args.output));
  if (!args.by.empty()) return run_table(args, output);
  const std::vector<std::string> before = by_flags ? args.before : std::vector{args.files[0]};
  const std::vector<std::string> after = by_flags ? args.after : std::vector{args.files[1]};
  FL_TRY(std::vector<std::string> files, find_run_files(before));
  FL_TRY(const std::vector<std::string> second_files, find_run_files(after));
  const auto runs_before = static_cast<std::ptrdiff_t>(files.size());
  files.insert(files.end(), second_files.begin(), second_files.end());
  FL_TRY(const std::vector<compare::Run> runs, read_runs(files));
  const std::vector<compare::Run> first(runs.begin(), runs.begin() + runs_before);
  const std::vector<compare::Run> second(runs.begin() + runs_before, runs.end());
  const compare::Difference difference =
      compare::compare_sides(first, second, {.alpha = args.alpha, .threshold = args.threshold_percent / 100});
  const bool for_people = output.form() == report::Form::kText || output.form() == report::Form::kMarkdown;
  FL_TRY_VOID(
      output.write(report::comparison_text(difference, for_people ? args.rows : 0, output.form(), output.style())));
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
        add_report_options(flags, args->output);
        return [args] { return run_compare(*args); };
      }};
}

}  // namespace firelane::cli
