// Reports as a piece of HTML, for notebooks: what a name contains is text, never markup.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/table.h"

namespace firelane::report {

struct HtmlOptions {
  size_t max_rows = 100;  // of each table
};

// Facts, tables (each with how many rows it has) and notes; no <html> or <body> around them.
std::string html(const Report& report, const HtmlOptions& options = {});

std::string html_escaped(std::string_view text);

}  // namespace firelane::report
