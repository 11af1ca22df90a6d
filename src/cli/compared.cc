#include "cli/compared.h"

#include "cli/open.h"
#include "cli/run_files.h"
#include "report/comparison.h"
#include "serve/api.h"
#include "serve/one_file.h"

namespace firelane::cli {

Result<void> add_side(const std::vector<std::string>& names, Compared& out, std::vector<size_t>& side) {
  FL_TRY(const std::vector<std::string> found, find_run_files(names));
  for (const std::string& file : found) {
    side.push_back(out.files.size());
    out.files.push_back(file);
  }
  return {};
}

Result<std::string> compared_text(const Compared& compared, size_t rows, report::Form form,
                                  const report::TextStyle& style) {
  FL_TRY(const std::vector<compare::Run> runs, read_runs(compared.files));
  const serve::Comparison& how = compared.comparison;
  if (how.by) {
    const report::RunsOptions options{
        .by = *how.by, .price_per_hour = how.price_per_hour, .one_table = form == report::Form::kCsv};
    return report::render(report::runs_report(runs, options), form, style);
  }
  const auto second = runs.begin() + static_cast<std::ptrdiff_t>(how.before.size());
  const compare::Difference difference =
      compare::compare_sides({runs.begin(), second}, {second, runs.end()}, how.judge);
  const bool for_people = form == report::Form::kText || form == report::Form::kMarkdown;
  return report::comparison_text(difference, for_people ? rows : 0, form, style);
}

Result<std::string> compared_page(const Compared& compared, std::string_view page) {
  FL_TRY(const auto traces, open_traces(compared.files));
  serve::Api api(traces, FIRELANE_VERSION, compared.comparison);
  return serve::one_file(api, page);
}

bool is_html_name(const std::string& path) { return path.ends_with(".html") || path.ends_with(".htm"); }

}  // namespace firelane::cli
