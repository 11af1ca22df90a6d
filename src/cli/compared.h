// The traces that a verb compares, and what it makes of them: text, or the viewer's page in one file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/table.h"
#include "serve/comparison.h"

namespace firelane::cli {

struct Compared {
  std::vector<std::string> files;
  serve::Comparison comparison;  // by number in `files`; with `by` all of them are in a table
};

// Adds the files of a side: traces, folders, patterns.
Result<void> add_side(const std::vector<std::string>& names, Compared& out, std::vector<size_t>& side);

// `rows`: of each table, for people.
Result<std::string> compared_text(const Compared& compared, size_t rows, report::Form form,
                                  const report::TextStyle& style = {});
// The page with all answers inside.
Result<std::string> compared_page(const Compared& compared, std::string_view page);

// By its name: a document that a browser opens.
bool is_html_name(const std::string& path);

}  // namespace firelane::cli
