// Text from a trace, made safe to print on one line of a terminal.
//
// Names in traces are whatever a program wrote: escape sequences that recolour or
// retitle the terminal, line breaks that forge rows, marks that reverse the reading
// order. visible_text() writes each of these as an escape (\n, \x1b, \u202e) and leaves
// all other characters alone; bytes that are not UTF-8 become \xNN.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace firelane {

std::string visible_text(std::string_view text);

// Columns that `text` takes on a terminal: 2 for East Asian wide characters and emoji,
// 0 for combining marks. REQUIRES: valid UTF-8 without control characters.
size_t display_width(std::string_view text);

// `text` cut to at most `width` columns, its middle replaced by "…": the ends of a kernel's
// name tell it from its neighbours. REQUIRES: as display_width; width >= 3.
std::string shorten_middle(std::string_view text, size_t width);

}  // namespace firelane
